//! What the cluster can do, and what it has agreed on.

use kafka_protocol::messages::api_versions_response::{
    ApiVersion, ApiVersionsResponse, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

use super::convert::{outcome, text};
use super::{Call, served};
use crate::cluster::{CONTROLLER, Cluster, FeatureChange};

impl Call<'_> {
    pub(super) fn update_features(&mut self, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse {
        let version = self.raw.version;
        let updates = request.feature_updates.iter().map(|it| {
            let change = match (version, it.upgrade_type) {
                // At first there was only a word whether it may go down.
                (0, _) if it.allow_downgrade => Some(FeatureChange::SafeDowngrade),
                (0, _) | (_, 1) => Some(FeatureChange::Upgrade),
                (_, 2) => Some(FeatureChange::SafeDowngrade),
                (_, 3) => Some(FeatureChange::UnsafeDowngrade),
                _ => None,
            };
            (it.feature.to_string(), it.max_version_level, change)
        });
        let updates: Vec<_> = updates.collect();
        let result = self.cluster.update_features(CONTROLLER, &updates, request.validate_only);
        let (code, message) = outcome(&result);
        let response = UpdateFeaturesResponse::default().with_error_code(code).with_error_message(message);
        if version > 1 || result.is_err() {
            return response;
        }
        let done = updates.iter().map(|(feature, ..)| {
            UpdatableFeatureResult::default().with_feature(text(feature)).with_error_message(Some(text("NONE")))
        });
        response.with_results(done.collect())
    }
}

/// The calls that are served, and the features; these not where the question could not be read.
pub(super) fn versions(cluster: &Cluster, error: i16) -> ApiVersionsResponse {
    let keys = served().map(|(key, oldest, newest)| {
        ApiVersion::default().with_api_key(key as i16).with_min_version(oldest).with_max_version(newest)
    });
    let response = ApiVersionsResponse::default().with_error_code(error).with_api_keys(keys.collect());
    if error != 0 {
        return response;
    }
    let supported = cluster.features().map(|feature| {
        let (oldest, newest) = feature.supported;
        let key = SupportedFeatureKey::default().with_name(text(feature.name));
        key.with_min_version(oldest).with_max_version(newest)
    });
    let finalized = cluster.features().into_iter().filter(|feature| feature.level > 0).map(|feature| {
        let key = FinalizedFeatureKey::default().with_name(text(feature.name));
        key.with_max_version_level(feature.level).with_min_version_level(feature.level)
    });
    response
        .with_supported_features(supported.to_vec())
        .with_finalized_features_epoch(cluster.metadata_offset())
        .with_finalized_features(finalized.collect())
}
