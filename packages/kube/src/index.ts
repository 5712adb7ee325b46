/**
 * The public surface of @seamark/kube: what programs need to read, watch and write objects and to run controllers. Parts
 * of the runtime that only tests use are in ./testing/parts.ts.
 */

// Objects
export { keyOf, kind, type Immutable, type Key, type Kind, type List, type Obj, type Status } from './object/object.ts'
export type { ObjectMeta, OwnerReference, Stored } from './object/object.ts'
export * from './object/kinds.ts'
export {
  findCondition,
  isConditionTrue,
  microTimestamp,
  setCondition,
  timestamp,
  type Condition,
} from './object/conditions.ts'
export { withController } from './object/owner.ts'
export { type AdaptiveLimiter, createLimiter } from './adaptive-limiter.ts'
export { poll } from './retry.ts'
export * from './errors.ts'
export { cleanText } from './server-text.ts'
export { parseDurationMs, type Duration } from './duration.ts'
export { sleep, systemClock, type Clock } from './clock.ts'
export { Backoff, retry } from './retry.ts'
export { GroupedCalls } from './grouped-calls.ts'
export { DebouncedKeys } from './controller/debounced-keys.ts'
export { Stop, type StopSignal, untilAborted } from './stop-signal.ts'
export { createLogger, type Logger, type LogLevel } from './log.ts'

export { ConnectionTable, limitConnections, networkOf, type ConnectionLimits, type Peer } from './connection-table.ts'

// Clusters
export { configFromText, loadConfig } from './config/config.ts'
export { parseRemoteConfig } from './config/remote-config.ts'
export { addressGuard, isAddressRange, type AddressGuard, type GuardOptions } from './config/address-guard.ts'
export type { ClusterConfig } from './config/cluster-config.ts'
export { requestedWaitMs } from './requested-wait.ts'
export type {
  ApplyOptions,
  Client,
  DeleteOptions,
  GetOptions,
  ListOptions,
  RequestObserver,
  WriteOptions,
} from './client/client.ts'
export { addFinalizer, removeFinalizer } from './client/finalizer.ts'
export { connect, type Cluster, type ConnectOptions } from './cache/cluster.ts'
export type { Index, Reader } from './cache/cache.ts'
export type * from './cache/informer.ts'
export { DEFAULT_MASS_LIMITS, isMassChange, type MassLimits } from './mass-limits.ts'
export { CacheLimitExceeded, type CacheLimits } from './watch/cache-limits.ts'

// Writes
export { decideApply, type ApplyDecision } from './apply/apply.ts'
export { createLearnedDefaults } from './apply/learned-defaults.ts'
export { LeadershipLost, type WriteFence } from './apply/write-fence.ts'
export { createWriter, fencedClient, type Writer } from './apply/writer.ts'

// Controllers
export {
  manager,
  untilSignalled,
  type Manager,
  type ManagerOptions,
  type Runnable,
  type RunnableOptions,
} from './manager/manager.ts'
export { reportingAs } from './manager/reporter.ts'
export type { Context, RunnableContext } from './controller/context.ts'
export type { ControllerOptions, KeyedControllerOptions, Reconciler } from './controller/controller.ts'
export type { KeyedAggregatorOptions, PassResult } from './controller/keyed-aggregator.ts'
export { watching, type AggregatorOptions } from './controller/aggregator.ts'
export type { Trigger } from './controller/triggers.ts'
export { requeue, Terminal, type Next } from './controller/reconcile-result.ts'
export { allOf, annotationsChanged, anyOf, labelsChanged, specChanged, type Predicate } from './controller/predicate.ts'
export { createQueue, type Queue } from './controller/queue.ts'
export { createRecorder, type Recorder } from './controller/events.ts'
export { type Listener, parseListen, startListener } from './manager/listener.ts'
export { createElection, type Election, type LeaseOptions } from './manager/lease.ts'
export type { Fleet, FleetEvent, FleetMember, Reachability } from './manager/fleet.ts'
export type { Metrics } from './metrics.ts'
export type { AdmissionHooks, AdmissionInfo } from './webhook/admission.ts'
export { createCertificateKeeper } from './webhook/certificate-keeper.ts'
export { convert, defineConversion, type Spoke } from './webhook/conversion.ts'
