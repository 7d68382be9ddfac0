//! How copies that run at once divide links, disks and quotas: max-min fair, so that nobody gets
//! more while somebody with less could still have more.

/// One copy's needs: the resources it uses, and the most it can use.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) uses: Vec<usize>,
    pub(crate) want: f64,
}

/// What each flow gets of the `capacity` of the resources it uses.
pub(crate) fn share(mut capacity: Vec<f64>, flows: &[Flow]) -> Vec<f64> {
    let mut given = vec![0.0; flows.len()];
    let mut users = vec![0_usize; capacity.len()];
    let mut open: Vec<usize> = (0..flows.len()).collect();
    for flow in flows {
        flow.uses.iter().for_each(|resource| users[*resource] += 1);
    }
    while !open.is_empty() {
        let tightest = (0..capacity.len())
            .filter(|resource| users[*resource] > 0)
            .map(|resource| (resource, (capacity[resource] / users[resource] as f64).max(0.0)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let level = tightest.map_or(f64::INFINITY, |(_, level)| level);
        let modest = open.iter().any(|flow| flows[*flow].want <= level);
        open.retain(|&n| {
            let flow = &flows[n];
            let settled = if modest {
                flow.want <= level
            } else {
                tightest.is_some_and(|(resource, _)| flow.uses.contains(&resource))
            };
            if settled {
                given[n] = flow.want.min(level);
                for resource in &flow.uses {
                    capacity[*resource] -= given[n];
                    users[*resource] -= 1;
                }
            }
            !settled
        });
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(uses: &[usize], want: f64) -> Flow {
        Flow { uses: uses.to_vec(), want }
    }

    #[test]
    fn equals_share_equally_and_the_modest_leave_their_rest() {
        let flows = [flow(&[0], 1e9), flow(&[0], 1e9), flow(&[0], 10.0)];
        assert_eq!(share(vec![100.0], &flows), [45.0, 45.0, 10.0]);
    }

    #[test]
    fn who_is_held_up_elsewhere_leaves_room() {
        let flows = [flow(&[0, 1], 1e9), flow(&[0], 1e9)];
        assert_eq!(share(vec![100.0, 20.0], &flows), [20.0, 80.0]);
    }

    #[test]
    fn nothing_left_is_nothing_given() {
        assert_eq!(share(vec![-5.0], &[flow(&[0], 7.0)]), [0.0]);
        assert_eq!(share(vec![], &[flow(&[], 7.0)]), [7.0]);
    }
}
