use expect_test::expect;
use serde_json::Value;

use super::super::testing;

/// What the page shows is rounded to this.
const ROUNDED: f64 = 0.000_5;

#[test]
fn the_page_shows_a_part_of_what_is_written() {
    let page = include_str!("../../../../../docs/plan.md");
    let (_, shown) = page.split_once("```json\n").expect("an example");
    let (shown, _) = shown.split_once("```").expect("its end");
    let written = testing::with_report(|report| serde_json::to_value(report).unwrap());
    assert_eq!(differs(&serde_json::from_str(shown).expect("JSON"), &written, ""), None);
}

/// Where something is shown that was not written. Lists are shortened, objects are whole.
fn differs(shown: &Value, written: &Value, at: &str) -> Option<String> {
    match (shown, written) {
        (Value::Object(shown), Value::Object(written)) if shown.keys().eq(written.keys()) => {
            shown.iter().find_map(|(key, value)| differs(value, &written[key], &format!("{at}/{key}")))
        }
        (Value::Array(shown), Value::Array(written)) if shown.is_empty() == written.is_empty() => {
            let is_there = |item: &Value| written.iter().any(|it| differs(item, it, at).is_none());
            shown.iter().find(|item| !is_there(item)).map(|item| format!("{at} has no {item}"))
        }
        (Value::Number(shown), Value::Number(written)) => {
            let apart = shown.as_f64().zip(written.as_f64()).map(|(shown, written)| (shown - written).abs());
            apart.is_none_or(|apart| apart > ROUNDED).then(|| format!("{at} is {written}, not {shown}"))
        }
        (shown, written) => (shown != written).then(|| format!("{at} is {written}, not {shown}")),
    }
}

#[test]
fn the_fields_are_those_documented() {
    let json = testing::with_report(|report| serde_json::to_string_pretty(report).unwrap());
    expect![[r#"
        {
          "version": 1,
          "planId": "4fc1637cae5ec93aff18472eadff2b9b",
          "mode": "rebalance",
          "cluster": {
            "name": "small",
            "brokers": 5,
            "topics": 9,
            "partitions": 9,
            "replicas": 18,
            "unmeasured": []
          },
          "summary": {
            "dataToMoveMB": 40000.0,
            "intraBrokerDataToMoveMB": 0.0,
            "changes": 3,
            "replicaMoves": 2,
            "leaderMoves": 3,
            "diskMoves": 0,
            "unsafeChanges": 0,
            "leastDataToMoveMB": 32800.0,
            "dataRatio": 1.2195121951219512,
            "minutes": {
              "expected": 5.5,
              "oneByOne": 3.7925925925925923,
              "betweenDisks": null
            },
            "undone": {
              "changes": 0,
              "dataToMoveMB": 0.0
            },
            "lost": {
              "partitions": 0,
              "dataMB": 0.0
            },
            "notEmptied": [],
            "onUnknownDisks": 0
          },
          "balancedness": {
            "before": 0.0,
            "after": 74.45721583652619
          },
          "provision": {
            "status": "RIGHT_SIZED",
            "recommendation": ""
          },
          "goals": [
            {
              "goal": "RackAwareGoal",
              "hard": true,
              "status": "FIXED",
              "missBefore": 1.0,
              "missAfter": 0.0,
              "refusedBy": [],
              "heldBackBy": []
            },
            {
              "goal": "DiskUsageDistributionGoal",
              "hard": false,
              "status": "FIXED",
              "missBefore": 0.7299999999999996,
              "missAfter": 0.0,
              "refusedBy": [],
              "heldBackBy": []
            },
            {
              "goal": "LeaderReplicaDistributionGoal",
              "hard": false,
              "status": "VIOLATED",
              "missBefore": 2.7777777777777777,
              "missAfter": 0.5555555555555556,
              "refusedBy": [
                {
                  "goal": "DiskUsageDistributionGoal",
                  "times": 7
                }
              ],
              "heldBackBy": [
                {
                  "rule": "unlikeReplicas",
                  "times": 3
                }
              ]
            }
          ],
          "unmeasuredGoals": [],
          "heals": false,
          "spread": [
            {
              "of": "cpu",
              "unit": "percent",
              "before": {
                "min": 4.0,
                "mean": 16.59999978542328,
                "max": 47.99999928474426,
                "standardDeviation": 15.894652934645723
              },
              "after": {
                "min": 10.99999988079071,
                "mean": 17.93333308696747,
                "max": 25.333333015441895,
                "standardDeviation": 4.543126616464341
              }
            },
            {
              "of": "networkInbound",
              "unit": "percent",
              "before": {
                "min": 9.0,
                "mean": 12.0,
                "max": 18.0,
                "standardDeviation": 3.286335345030997
              },
              "after": {
                "min": 12.0,
                "mean": 12.0,
                "max": 12.0,
                "standardDeviation": 0.0
              }
            },
            {
              "of": "networkOutbound",
              "unit": "percent",
              "before": {
                "min": 0.0,
                "mean": 10.8,
                "max": 36.0,
                "standardDeviation": 12.812493902437572
              },
              "after": {
                "min": 6.0,
                "mean": 12.0,
                "max": 18.0,
                "standardDeviation": 3.794733192202055
              }
            },
            {
              "of": "disk",
              "unit": "percent",
              "before": {
                "min": 20.0,
                "mean": 26.666666666666668,
                "max": 40.0,
                "standardDeviation": 7.302967433402214
              },
              "after": {
                "min": 26.666666666666668,
                "mean": 26.666666666666668,
                "max": 26.666666666666668,
                "standardDeviation": 0.0
              }
            },
            {
              "of": "replicas",
              "unit": "count",
              "before": {
                "min": 2.0,
                "mean": 3.6,
                "max": 6.0,
                "standardDeviation": 1.3564659966250536
              },
              "after": {
                "min": 2.0,
                "mean": 3.6,
                "max": 4.0,
                "standardDeviation": 0.8000000000000002
              }
            },
            {
              "of": "leaders",
              "unit": "count",
              "before": {
                "min": 0.0,
                "mean": 1.8,
                "max": 6.0,
                "standardDeviation": 2.1354156504062622
              },
              "after": {
                "min": 1.0,
                "mean": 1.8,
                "max": 3.0,
                "standardDeviation": 0.7483314773547883
              }
            },
            {
              "of": "potentialNetworkOutbound",
              "unit": "percent",
              "before": {
                "min": 18.0,
                "mean": 24.0,
                "max": 36.0,
                "standardDeviation": 6.572670690061994
              },
              "after": {
                "min": 24.0,
                "mean": 24.0,
                "max": 24.0,
                "standardDeviation": 0.0
              }
            },
            {
              "of": "leaderNetworkInbound",
              "unit": "KB/s",
              "before": {
                "min": 0.0,
                "mean": 16200.0,
                "max": 54000.0,
                "standardDeviation": 19218.74085365636
              },
              "after": {
                "min": 9000.0,
                "mean": 16200.0,
                "max": 27000.0,
                "standardDeviation": 6734.983296193094
              }
            }
          ],
          "brokers": [
            {
              "broker": 0,
              "rack": "a",
              "host": "h0",
              "state": "ALIVE",
              "capacity": {
                "cpu": 100.0,
                "networkInbound": 300000.0,
                "networkOutbound": 200000.0,
                "disk": 300000.0
              },
              "before": {
                "replicas": 6,
                "leaders": 6,
                "load": {
                  "cpu": 47.99999928474426,
                  "networkInbound": 54000.0,
                  "networkOutbound": 72000.0,
                  "disk": 120000.0
                },
                "percent": {
                  "cpu": 47.99999928474426,
                  "networkInbound": 18.0,
                  "networkOutbound": 36.0,
                  "disk": 40.0
                },
                "potentialNetworkOutbound": 72000.0,
                "leaderNetworkInbound": 54000.0
              },
              "after": {
                "replicas": 4,
                "leaders": 3,
                "load": {
                  "cpu": 25.333333015441895,
                  "networkInbound": 36000.0,
                  "networkOutbound": 36000.0,
                  "disk": 80000.0
                },
                "percent": {
                  "cpu": 25.333333015441895,
                  "networkInbound": 12.0,
                  "networkOutbound": 18.0,
                  "disk": 26.666666666666668
                },
                "potentialNetworkOutbound": 48000.0,
                "leaderNetworkInbound": 27000.0
              }
            },
            {
              "broker": 1,
              "rack": "a",
              "host": "h1",
              "state": "ALIVE",
              "capacity": {
                "cpu": 50.0,
                "networkInbound": 150000.0,
                "networkOutbound": 100000.0,
                "disk": 150000.0
              },
              "before": {
                "replicas": 2,
                "leaders": 0,
                "load": {
                  "cpu": 2.0,
                  "networkInbound": 18000.0,
                  "networkOutbound": 0.0,
                  "disk": 40000.0
                },
                "percent": {
                  "cpu": 4.0,
                  "networkInbound": 12.0,
                  "networkOutbound": 0.0,
                  "disk": 26.666666666666668
                },
                "potentialNetworkOutbound": 24000.0,
                "leaderNetworkInbound": 0.0
              },
              "after": {
                "replicas": 2,
                "leaders": 1,
                "load": {
                  "cpu": 8.666666507720947,
                  "networkInbound": 18000.0,
                  "networkOutbound": 12000.0,
                  "disk": 40000.0
                },
                "percent": {
                  "cpu": 17.333333015441895,
                  "networkInbound": 12.0,
                  "networkOutbound": 12.0,
                  "disk": 26.666666666666668
                },
                "potentialNetworkOutbound": 24000.0,
                "leaderNetworkInbound": 9000.0
              }
            },
            {
              "broker": 2,
              "rack": "b",
              "host": "h2",
              "state": "ALIVE",
              "capacity": {
                "cpu": 100.0,
                "networkInbound": 300000.0,
                "networkOutbound": 200000.0,
                "disk": 300000.0
              },
              "before": {
                "replicas": 3,
                "leaders": 1,
                "load": {
                  "cpu": 9.99999988079071,
                  "networkInbound": 27000.0,
                  "networkOutbound": 12000.0,
                  "disk": 60000.0
                },
                "percent": {
                  "cpu": 9.99999988079071,
                  "networkInbound": 9.0,
                  "networkOutbound": 6.0,
                  "disk": 20.0
                },
                "potentialNetworkOutbound": 36000.0,
                "leaderNetworkInbound": 9000.0
              },
              "after": {
                "replicas": 4,
                "leaders": 2,
                "load": {
                  "cpu": 17.99999976158142,
                  "networkInbound": 36000.0,
                  "networkOutbound": 24000.0,
                  "disk": 80000.0
                },
                "percent": {
                  "cpu": 17.99999976158142,
                  "networkInbound": 12.0,
                  "networkOutbound": 12.0,
                  "disk": 26.666666666666668
                },
                "potentialNetworkOutbound": 48000.0,
                "leaderNetworkInbound": 18000.0
              }
            },
            {
              "broker": 3,
              "rack": "b",
              "host": "h3",
              "state": "ALIVE",
              "capacity": {
                "cpu": 100.0,
                "networkInbound": 300000.0,
                "networkOutbound": 200000.0,
                "disk": 300000.0
              },
              "before": {
                "replicas": 3,
                "leaders": 1,
                "load": {
                  "cpu": 9.99999988079071,
                  "networkInbound": 27000.0,
                  "networkOutbound": 12000.0,
                  "disk": 60000.0
                },
                "percent": {
                  "cpu": 9.99999988079071,
                  "networkInbound": 9.0,
                  "networkOutbound": 6.0,
                  "disk": 20.0
                },
                "potentialNetworkOutbound": 36000.0,
                "leaderNetworkInbound": 9000.0
              },
              "after": {
                "replicas": 4,
                "leaders": 2,
                "load": {
                  "cpu": 17.99999976158142,
                  "networkInbound": 36000.0,
                  "networkOutbound": 24000.0,
                  "disk": 80000.0
                },
                "percent": {
                  "cpu": 17.99999976158142,
                  "networkInbound": 12.0,
                  "networkOutbound": 12.0,
                  "disk": 26.666666666666668
                },
                "potentialNetworkOutbound": 48000.0,
                "leaderNetworkInbound": 18000.0
              }
            },
            {
              "broker": 4,
              "rack": "c",
              "host": "h4",
              "state": "ALIVE",
              "capacity": {
                "cpu": 100.0,
                "networkInbound": 300000.0,
                "networkOutbound": 200000.0,
                "disk": 300000.0
              },
              "before": {
                "replicas": 4,
                "leaders": 1,
                "load": {
                  "cpu": 10.99999988079071,
                  "networkInbound": 36000.0,
                  "networkOutbound": 12000.0,
                  "disk": 80000.0
                },
                "percent": {
                  "cpu": 10.99999988079071,
                  "networkInbound": 12.0,
                  "networkOutbound": 6.0,
                  "disk": 26.666666666666668
                },
                "potentialNetworkOutbound": 48000.0,
                "leaderNetworkInbound": 9000.0
              },
              "after": {
                "replicas": 4,
                "leaders": 1,
                "load": {
                  "cpu": 10.99999988079071,
                  "networkInbound": 36000.0,
                  "networkOutbound": 12000.0,
                  "disk": 80000.0
                },
                "percent": {
                  "cpu": 10.99999988079071,
                  "networkInbound": 12.0,
                  "networkOutbound": 6.0,
                  "disk": 26.666666666666668
                },
                "potentialNetworkOutbound": 48000.0,
                "leaderNetworkInbound": 9000.0
              }
            }
          ],
          "disks": [],
          "changes": [
            {
              "topic": "T0",
              "partition": 0,
              "oldReplicas": [
                0,
                1
              ],
              "newReplicas": [
                1,
                2
              ],
              "moves": [
                {
                  "from": 0,
                  "to": 2
                }
              ],
              "oldLeader": 0,
              "newLeader": 1,
              "dataToMoveMB": 20000.0,
              "intraBrokerDataToMoveMB": 0.0,
              "disks": [],
              "lost": false,
              "reasons": [
                {
                  "cause": "goal",
                  "goal": "RackAwareGoal",
                  "from": 0,
                  "to": 2,
                  "gain": 1.0,
                  "exchange": false
                },
                {
                  "cause": "goal",
                  "goal": "LeaderReplicaDistributionGoal",
                  "from": 0,
                  "to": 1,
                  "gain": 0.5555555555555556,
                  "exchange": false
                }
              ],
              "why": "RackAwareGoal: brokers 0 and 1 are both in rack a, broker 2 is in b; also LeaderReplicaDistributionGoal"
            },
            {
              "topic": "T3",
              "partition": 0,
              "oldReplicas": [
                0,
                4
              ],
              "newReplicas": [
                3,
                4
              ],
              "moves": [
                {
                  "from": 0,
                  "to": 3
                }
              ],
              "oldLeader": 0,
              "newLeader": 3,
              "dataToMoveMB": 20000.0,
              "intraBrokerDataToMoveMB": 0.0,
              "disks": [],
              "lost": false,
              "reasons": [
                {
                  "cause": "goal",
                  "goal": "DiskUsageDistributionGoal",
                  "from": 0,
                  "to": 3,
                  "gain": 0.31999999999999984,
                  "exchange": false
                }
              ],
              "why": "DiskUsageDistributionGoal: disk at 40.0 % on broker 0, 20.0 % on broker 3, 26.7 % on average"
            },
            {
              "topic": "T1",
              "partition": 0,
              "oldReplicas": [
                0,
                2
              ],
              "newReplicas": [
                2,
                0
              ],
              "moves": [],
              "oldLeader": 0,
              "newLeader": 2,
              "dataToMoveMB": 0.0,
              "intraBrokerDataToMoveMB": 0.0,
              "disks": [],
              "lost": false,
              "reasons": [
                {
                  "cause": "goal",
                  "goal": "LeaderReplicaDistributionGoal",
                  "from": 0,
                  "to": 2,
                  "gain": 0.5555555555555556,
                  "exchange": false
                }
              ],
              "why": "LeaderReplicaDistributionGoal: 6 leaders on broker 0, 1 on broker 2, 2 on average"
            }
          ]
        }"#]].assert_eq(&json);
}
