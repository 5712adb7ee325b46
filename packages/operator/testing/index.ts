/**
 * Fixtures and parts of the product for tests in other folders. Not a public surface.
 */
export { ownershipOf } from '../src/records/plan/ownership.ts'
export { createZoneView } from '../src/records/plan/zone-view.ts'
export { markedSet, markerName } from '../src/rrset/marker.ts'
export { compareSets, type ObservedRRset, printSet } from '../src/rrset/rrset.ts'
export { type GeneratedPlanInput, OWNER, record, want, planFixtures } from './plan-fixture.ts'
export { planFactsOf, readyCluster } from './root-plan-fixture.ts'
export { planRoot } from '../src/fleet/decide/plan.ts'
export { Claims } from '../src/fleet/claims.ts'
export { ingressRoot } from '../src/fleet/roots/ingress.ts'
export { deleteExactly } from '../src/fleet/members/exact-delete.ts'
export * from './prober-thread.ts'
export { startWorker } from '../src/health/monitor.ts'
export { createProbeClient } from '../src/health/probe.ts'
export { createProber } from '../src/health/prober.ts'
export { systemConnect } from '../src/health/connection.ts'
export { PROFILES, probeTarget } from '../src/health/policy.ts'
