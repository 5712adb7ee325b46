/** The public surface of @seamark/operator. */
export * from './api/certificate.ts'
export * from './api/cluster.ts'
export * from './api/crds/crds.ts'
export * from './api/dns-endpoint.ts'
export * from './api/dns-load-balancer.ts'
export * from './api/crds/dns-load-balancer-crds.ts'
export * from './api/dns-load-balancer-endpoint.ts'
export * from './api/dns-provider.ts'
export * from './api/v1/dns-load-balancer.ts'
export * from './api/v1/dns-load-balancer-endpoint.ts'
export * from './api/v1/dns-provider.ts'
export { type CrdAction, installCrds } from './api/crds/install-crds.ts'
export * from './api/domain-verification.ts'
export * from './api/crds/fleet-crds.ts'
export * from './api/global-ingress.ts'
export * from './api/global-ingress-policy.ts'
export * from './api/host-claim.ts'
export * from './api/leaf-ingress.ts'
export * from '@seamark/kube/gateway-api'
export * from '@seamark/kube/contour'
export { processGrants } from '@seamark/dialects'
export * from './api/route.ts'
export { AdmissionConfig } from './process/admission-config.ts'
export { runApp } from './app/app.ts'
export type { AppOptions, OpenPage, OptionChanges, PageSource } from './app/options.ts'
export { DashboardConfig, servesPage } from './process/dashboard-config.ts'
export { configurationNotices, type FoundConfiguration } from './process/reports/configuration-notices.ts'
export type { Notice } from './process/reports/notices.ts'
export { GatewayConfig } from './process/gateway-config.ts'
export { gateWrites, WriteRefused } from './process/write-gate.ts'
export * from './config.ts'
export { leaseTimes, type LeaseTimes } from './duration.ts'
export { FleetConfig, type FleetOptions } from './fleet/config.ts'
export { type Attributes, mayDo } from './rights/access-review.ts'
export { MANAGER_PARTS, type Part, type PartName, partsOf } from './rights/manager-rights.ts'
export { MEMBER_NAMESPACES, MEMBER_ROLE, MEMBER_TLS_ROLE, WILDCARD_ROLE } from './rights/member-rights.ts'
export { type Place, resourceNameOf, type Right, type Rule, rulesOf } from './rights/right.ts'
export { LEAF_CLUSTER_LABEL } from './fleet/names.ts'
export { type HostTrace, printTree, publishedAddresses, traceHost, withAnswered } from './fleet/trace.ts'
export { previewDrain } from './fleet/drain-preview.ts'
export * from './reasons.ts'
export type { AnswerFact, ExplainFacts, Explanation, Hop, PlanFact } from './explain/facts.ts'
export { explain } from './explain/chain.ts'
export { type ExplainDeps, gatherFacts, gatherFleetFacts } from './explain/gather.ts'
export { findHostAnswers, isWithin } from './explain/host-answers.ts'
export { findManagerLease } from './process/manager-lease.ts'
export { holdReported } from './explain/record-reports.ts'
export { CachedHosts, type CachedHost, type CachedHostsDeps } from './explain/cached-hosts.ts'
export { fleetFacts } from './explain/fleet-facts.ts'
export { PlanReader, type PlanReaderDeps, zoneName } from './explain/plan-reader.ts'
export { decideSource } from './publish/decide/decide-source.ts'
export { dryRun, type DryRunReport, summarize } from './publish/report/dry-run.ts'
export {
  CONTOUR_PLUS_FLAGS,
  environmentName,
  type FlagName,
  type FlagValues,
  readContourPlusFlags,
} from './publish/flags.ts'
export { cleanUp } from './publish/cleanup.ts'
export { type Difference, shadow, type ShadowReport } from './publish/report/shadow.ts'
export { PublishConfig } from './publish/config.ts'
export { dropIn, type PublishOptions, publishOptions, unified } from './publish/options.ts'
export { wildcardDefaults, type WildcardOptions, wildcardOptions } from './wildcard/options.ts'
export { claimNames } from './balance/decide/claims.ts'
export {
  type BalanceDecision,
  type BalanceFacts,
  type BalanceReport,
  decide as decideLoadBalancer,
  type RecordsDecision,
} from './balance/decide/decide.ts'
export {
  decideSource as decideEndpoints,
  isEndpointOf,
  type SourceDecision,
  type SourceFacts,
} from './balance/source/decide-source.ts'
export type { Source as EndpointSource } from './balance/source/source.ts'
export { refOf } from './hosts/load-balancer.ts'
export { setUpEndpointSources } from './balance/source/endpoint-controller.ts'
export { type EndpointFate, judgeEndpoint } from './balance/decide/endpoints.ts'
export { BALANCE_DEFAULTS, type BalanceDefaults, probeOf } from './balance/load-balancer.ts'
export { setUpLoadBalancers } from './balance/load-balancer-controller.ts'
export type { LoadBalancerControllerOptions } from './balance/load-balancer-options.ts'
export { type BalanceOptions, setUpBalance } from './balance/set-up.ts'
export { BalanceConfig, balanceDefaults } from './balance/config.ts'
export { createBalanceMetrics, createMetricsRegistry } from './balance/report/balance-metrics.ts'
export { runDnslb } from './dnslb/app.ts'
export type { DnslbOptions, StandaloneOptions } from './dnslb/options.ts'
export { Heartbeat } from './dnslb/heartbeat.ts'
export { loadPlugins, type PluginApi } from './dnslb/plugins.ts'
export { createProviderTypes } from './dnslb/provider-types.ts'
export { runStandalone } from './dnslb/standalone.ts'
export { createMarkerReader, isFieldText, isMarkerName, markedSet } from './rrset/marker.ts'
export {
  createHealthMonitor,
  type HealthMonitor,
  type HealthMonitorDeps,
  type MonitoredTarget,
  type TargetHealth,
} from './health/monitor.ts'
export { detectionBoundMs, type ProbePolicy, type ProbeRequest, probeTarget, PROFILES } from './health/policy.ts'
export { PROBE_CODES, type ProbeCode } from './health/probe-failure.ts'
export {
  CONFORMANCE,
  type ConformanceCase,
  ConformanceError,
  type ConformanceSubject,
} from './providers/conformance.ts'
export { embeddedProvider } from './providers/embedded.ts'
export { DnsConfig } from './serve/config.ts'
export { findZoneFolder } from './serve/data-dir.ts'
export { type DnsService, type DnsServiceOptions, openDnsService } from './serve/dns-service.ts'
export type { ZoneStatus } from './serve/stored-zones.ts'
export { createDnsMetrics } from './serve/dns-metrics.ts'
export { setUpDns } from './serve/set-up.ts'
export { type MemoryProvider, memoryProvider } from './providers/memory.ts'
export { corednsProvider } from './providers/coredns/coredns.ts'
export { powerdnsProvider } from './providers/powerdns.ts'
export type { Capabilities, Provider, ProviderZone } from './providers/provider.ts'
export { rfc2136Provider } from './providers/rfc2136.ts'
export { awsProvider } from './providers/route53/aws.ts'
export { webhookProvider } from './providers/webhook/webhook.ts'
export { startWebhookServer } from './providers/webhook/webhook-server.ts'
export { createProvider, parseServer } from './providers/create-provider.ts'
export {
  compareWithServers,
  type Comparison as ServerComparison,
  type ServerAnswer,
} from './records/sync/authoritative.ts'
export { ADDRESS_TYPES, askServer } from './authority/answers.ts'
export { type FindServers, findServersBy, lookUpServers, serversOf } from './authority/name-servers.ts'
export { ownServers } from './serve/own-servers.ts'
export { type Owner, ownershipOf } from './records/plan/ownership.ts'
export type { ZoneView } from './records/plan/zone-view.ts'
export { kindOfRoot } from './fleet/roots/root-kinds.ts'
export { sourceKindOf } from './publish/sources/source-reader.ts'
export { ProviderConfig } from './providers/config.ts'
export { RecordsConfig } from './records/config.ts'
export {
  sourceOf,
  type DesiredRecords,
  desiredOf,
  desiredWithinLimits,
} from './records/sync/sources/dns-endpoint-source.ts'
export { type HeldStore, joinStores } from './safety/held-store.ts'
export { HELD_OBJECTS_STORE, isObjectId, isObjectScope, openObjectStore } from './safety/object-store.ts'
export { massLimits, SafetyConfig } from './safety/config.ts'
export {
  createEngine,
  ownedSources,
  type Engine,
  type Planned,
  type Target,
  type Unread,
  type PlanRequest,
} from './records/engine.ts'
export { ProviderError, RecordsError } from './rrset/error.ts'
export { describeResult, failuresOf, type PlanOutcome } from './records/execute/result.ts'
export { exportDnsEndpoint, exportedSets } from './records/plan/export.ts'
export {
  fileGuardStore,
  type GuardState,
  configMapGuardStore,
  type GuardStore,
  memoryGuardStore,
} from './records/state/guard-state.ts'
export { type HandOver, planAdoption, planExclusive, planRelease, planTransfer } from './records/plan/hand-over.ts'
export { heldMessage } from './records/plan/held-set.ts'
export { approveCommand, type HeldChange } from './safety/held-change.ts'
export { type ApprovalReport, approveInStore, type HeldSet, heldSets } from './safety/approve.ts'
export { inverseOf } from './records/plan/inverse.ts'
export { createProviderCalls } from './records/execute/provider-calls.ts'
export { createKillSwitch, isPausedBy, type KillSwitch, type KillSwitchControl } from './process/kill-switch.ts'
export { openEngine, type OpenedEngine } from './records/open-engine.ts'
export { parsePlanFile, printPlanJson } from './records/plan/plan-file.ts'
export { printPlanMarkdown, printPlanText } from './records/plan/plan-text.ts'
export type { Change, Desired, Plan, Refusal, Unusable } from './records/plan/plan.ts'
export { canonicalName, isInvalid, type ObservedRRset, type RRset, shown } from './rrset/rrset.ts'
export { dnsEndpointProvider } from './providers/dnsendpoint.ts'
export { openRecordsStores, openStoreFolder, type RecordsStores } from './records/stores/stores.ts'
export { recordsInUse } from './app/own-zones.ts'
export { loadStoredZone, storedZonesProvider, type StoredZonesProviderOptions } from './serve/stored-zones-provider.ts'
export { servedBy } from './records/sync/set-up.ts'
export { nameAmong, type TenantRules, tenantRules } from './records/sync/tenants/tenant-rules.ts'
export { checkSources } from './records/sync/sources/source-check.ts'
export { FIELD_MANAGER } from './process/field-manager.ts'
export { CONFIGURATION_OBJECT, VERIFY_ANNOTATION, watchSwitches } from './process/switches.ts'
