/** Series in the notation of promtool: `1x140` is 1 for 140 minutes, `0+60x140` grows by 60 a minute. */
export type Series = readonly [name: string, values: string]

const always = (value: number): string => `${value}x140`
const growing = (perMinute: number): string => `0+${perMinute}x140`

/** A manager of every capability, of which nothing is to be said. */
export const QUIET: readonly Series[] = [
  ['leader_election_master_status{name="seamark",pod="a"}', always(1)],
  ['leader_election_master_status{name="seamark",pod="b"}', always(0)],
  ['seamark_paused{pod="a"}', always(0)],
  ['controller_runtime_reconcile_errors_total{controller="publish"}', always(3)],
  ['controller_runtime_reconcile_panics_total{controller="publish"}', always(0)],
  ['seamark_watch_last_event_age_seconds{cluster="eu1",kind="Ingress"}', always(50)],
  ['seamark_event_loop_delay_seconds{quantile="0.99"}', always(0.02)],
  ['controller_runtime_webhook_requests_total{webhook="/validate",code="500"}', always(0)],
  ['seamark_publish_held', always(0)],
  ['seamark_publish_sources{kind="HTTPProxy",reason="Published"}', always(40)],
  ['seamark_publish_sources{kind="HTTPProxy",reason="SecondWriter"}', always(0)],
  ['contour_plus_certificates_applied_total{controller="certificate-apply",result="error"}', always(0)],
  ['seamark_wildcard_held', always(0)],
  ['seamark_wildcard_targets{cluster="eu1"}', always(3)],
  ['seamark_records_held{provider="",zone="",reason="Quarantined"}', always(0)],
  ['seamark_records_zone_stale{provider="bind",zone="example.com."}', always(0)],
  // As promtool starts at 0 and the clock with it, this is the time itself.
  ['seamark_records_last_sync_timestamp_seconds{provider="bind",zone="example.com."}', growing(60)],
  ['seamark_provider_calls_total{provider="bind",call="apply",reason=""}', growing(60)],
  ['seamark_provider_calls_total{provider="bind",call="apply",reason="ProviderUnavailable"}', always(2)],
  [
    'seamark_records_changes_total{provider="bind",zone="example.com.",op="create",result="applied",reason=""}',
    growing(5),
  ],
  [
    'seamark_records_changes_total{provider="bind",zone="example.com.",op="create",result="refused",reason="ForeignOwner"}',
    always(1),
  ],
  ['seamark_fleet_cluster_reachable{cluster="eu1"}', always(1)],
  ['seamark_fleet_leaves_held', always(0)],
  ['seamark_fleet_leaves{cluster="eu1",phase="Active"}', always(12)],
  ['seamark_fleet_leaves{cluster="eu1",phase="Unhealthy"}', always(0)],
  ['seamark_fleet_leaves{cluster="eu1",phase="Warming"}', always(0)],
  ['seamark_fleet_drift_corrections_total{cluster="eu1"}', always(4)],
  ['loadbalancer_health{loadbalancer="shop/app"}', always(1)],
  ['endpoint_health{loadbalancer="shop/app",endpoint="shop/app-1"}', always(1)],
  ['seamark_dns_zone_served{zone="example.com.",pod="a"}', always(1)],
  ['seamark_dns_zone_served{zone="example.com.",pod="b"}', always(1)],
  ['seamark_dns_zone_serial{zone="example.com.",pod="a"}', growing(1)],
  ['seamark_dns_zone_serial{zone="example.com.",pod="b"}', growing(1)],
  ['seamark_dns_responses_total{rcode="NOERROR"}', growing(6_000)],
  ['seamark_dns_responses_total{rcode="SERVFAIL"}', growing(1)],
  ['seamark_dns_dropped_total{reason="limited"}', growing(6)],
  ['seamark_gateway_requests_total{class="2xx"}', growing(6_000)],
  ['seamark_gateway_requests_total{class="5xx"}', growing(6)],
  ['seamark_gateway_xds_streams', always(2)],
  ['seamark_gateway_xds_rejected{type="route"}', always(0)],
  ['seamark_gateway_port_faults', always(0)],
  ['seamark_gateway_invalid_objects{kind="HTTPProxy"}', always(0)],
  ['seamark_gateway_regex_exceeded_total', always(0)],
]

/** Which series of the quiet manager differ when an alert fires. */
export const FIRING: Readonly<Record<string, readonly Series[]>> = {
  SeamarkAbsent: [['leader_election_master_status{name="seamark",pod="a"}', always(0)]],
  SeamarkPaused: [['seamark_paused{pod="a"}', always(1)]],
  SeamarkReconcileErrors: [['controller_runtime_reconcile_errors_total{controller="publish"}', growing(20)]],
  SeamarkReconcilePanics: [['controller_runtime_reconcile_panics_total{controller="publish"}', growing(1)]],
  SeamarkWatchSilent: [['seamark_watch_last_event_age_seconds{cluster="eu1",kind="Ingress"}', growing(60)]],
  SeamarkEventLoopStalled: [['seamark_event_loop_delay_seconds{quantile="0.99"}', always(1.5)]],
  SeamarkWebhookErrors: [['controller_runtime_webhook_requests_total{webhook="/validate",code="500"}', growing(1)]],
  SeamarkPublishHeld: [['seamark_publish_held', always(9)]],
  SeamarkSecondWriter: [['seamark_publish_sources{kind="HTTPProxy",reason="SecondWriter"}', always(1)]],
  SeamarkCertificatesFailing: [
    ['contour_plus_certificates_applied_total{controller="certificate-apply",result="error"}', growing(1)],
  ],
  SeamarkWildcardHeld: [['seamark_wildcard_held', always(1)]],
  SeamarkWildcardEmpty: [['seamark_wildcard_targets{cluster="eu1"}', always(0)]],
  SeamarkBreakerOpen: [
    ['seamark_records_held{provider="bind",zone="example.com.",reason="ShrinkBreakerOpen"}', always(8)],
  ],
  SeamarkDeletionsQuarantined: [
    ['seamark_records_held{provider="bind",zone="example.com.",reason="DeleteBudgetSpent"}', always(3)],
  ],
  SeamarkZoneStale: [['seamark_records_zone_stale{provider="bind",zone="example.com."}', always(1)]],
  SeamarkZoneNotSynced: [
    ['seamark_records_last_sync_timestamp_seconds{provider="bind",zone="example.com."}', always(0)],
  ],
  SeamarkProviderErrors: [
    ['seamark_provider_calls_total{provider="bind",call="apply",reason="ProviderUnavailable"}', growing(10)],
  ],
  SeamarkRecordsRefused: [
    [
      'seamark_records_changes_total{provider="bind",zone="example.com.",op="create",result="refused",reason="ForeignOwner"}',
      growing(1),
    ],
  ],
  SeamarkClusterUnreachable: [['seamark_fleet_cluster_reachable{cluster="eu1"}', always(0)]],
  SeamarkLeavesHeld: [['seamark_fleet_leaves_held', always(2)]],
  SeamarkLeavesUnhealthy: [['seamark_fleet_leaves{cluster="eu1",phase="Unhealthy"}', always(2)]],
  SeamarkLeavesStuck: [['seamark_fleet_leaves{cluster="eu1",phase="Warming"}', always(1)]],
  SeamarkFleetDrift: [['seamark_fleet_drift_corrections_total{cluster="eu1"}', growing(1)]],
  SeamarkLoadBalancerUnhealthy: [['loadbalancer_health{loadbalancer="shop/app"}', always(0)]],
  SeamarkEndpointUnhealthy: [['endpoint_health{loadbalancer="shop/app",endpoint="shop/app-1"}', always(0)]],
  SeamarkDnsZoneNotServed: [['seamark_dns_zone_served{zone="example.com.",pod="b"}', always(0)]],
  SeamarkDnsReplicasDiffer: [['seamark_dns_zone_serial{zone="example.com.",pod="b"}', always(1)]],
  SeamarkDnsFailures: [['seamark_dns_responses_total{rcode="SERVFAIL"}', growing(600)]],
  SeamarkDnsRateLimited: [['seamark_dns_dropped_total{reason="limited"}', growing(6_000)]],
  SeamarkGatewayErrors: [['seamark_gateway_requests_total{class="5xx"}', growing(600)]],
  SeamarkGatewayWithoutEnvoy: [['seamark_gateway_xds_streams', always(0)]],
  SeamarkGatewayRejected: [['seamark_gateway_xds_rejected{type="route"}', always(1)]],
  SeamarkGatewayPortFaults: [['seamark_gateway_port_faults', always(1)]],
  SeamarkGatewayInvalidObjects: [['seamark_gateway_invalid_objects{kind="HTTPProxy"}', always(2)]],
  SeamarkGatewayRegexExceeded: [['seamark_gateway_regex_exceeded_total', growing(1)]],
}
