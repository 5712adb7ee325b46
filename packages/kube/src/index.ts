/** The public surface of @seamark/kube. */
export * from './object/object.ts'
export * from './errors.ts'
export type * from './client/client.ts'
export type * from './cache/cache.ts'
export type * from './cache/informer.ts'
export * from './object/kinds.ts'
export { connect, type Cluster, type ConnectOptions } from './cache/cluster.ts'
export type { ClusterConfig } from './config/cluster-config.ts'
export type { Exchange, OpenStream, Transport } from './transport/transport.ts'
export { configFromText, loadConfig, type ConfigOptions } from './config/config.ts'
export type { Credentials, Impersonation, TlsMaterial } from './config/credentials.ts'
export { loadInCluster } from './config/in-cluster.ts'
export { parseRemoteConfig, type RemoteConfigOptions } from './config/remote-config.ts'
export { addressGuard, isAddressRange, type AddressGuard, type GuardOptions } from './config/address-guard.ts'
export { CacheLimitExceeded, type CacheLimits } from './watch/cache-limits.ts'
export { UID_MARK } from './decode/managed-fields.ts'
export { MAX_REQUESTED_WAIT_MS, requestedWaitMs } from './requested-wait.ts'
export { sleep, systemClock, type Clock } from './clock.ts'
export { untilAborted, type StopSignal } from './stop-signal.ts'
export { decideApply, learnDefaults, type ApplyInput, type ApplyDecision } from './apply/apply.ts'
export { createLearnedDefaults, type LearnedDefaults } from './apply/learned-defaults.ts'
export * from './object/conditions.ts'
export * from './object/owner.ts'
export { addFinalizer, nextFinalizerStep, removeFinalizer, type FinalizerStep } from './client/finalizer.ts'
export * from './controller/predicate.ts'
export {
  createQueue,
  LOW_PRIORITY,
  type AddOptions,
  type Queue,
  type QueueObserver,
  type QueueOptions,
} from './controller/queue.ts'
export { durationMs, parseDurationMs, type Duration } from './duration.ts'
export { createLogger, Secret as SecretText, type Logger, type LogLevel, type LogOptions } from './log.ts'
export { requeue, Terminal, type Next } from './controller/reconcile-result.ts'
export type { Context, Environment, RunnableContext } from './controller/context.ts'
export { createWriter, fencedClient, type StatusOf, type Writer, type WriterDeps } from './apply/writer.ts'
export type {
  ControllerBuilder,
  ControllerOptions,
  KeyedControllerBuilder,
  KeyedControllerOptions,
  Reconciler,
  WatchOptions as ControllerWatchOptions,
} from './controller/controller.ts'
export type {
  DirtyKeys,
  KeyedAggregatorBuilder,
  KeyedAggregatorOptions,
  MarkedKeys,
  PassResult,
} from './controller/keyed-aggregator.ts'
export type { Trigger } from './controller/triggers.ts'
export { watching, type AggregatorOptions, type WatchedKind } from './controller/aggregator.ts'
export { createElection, type Election, type LeaseOptions } from './manager/lease.ts'
export { LeadershipLost, openFence, type WriteFence } from './apply/write-fence.ts'
export { createRecorder, type EventRecord, type EventType, type Recorder } from './controller/events.ts'
export type { EngageOptions, Fleet, FleetEvent, FleetMember, Reachability } from './manager/fleet.ts'
export type { Metrics } from './metrics.ts'
export type { Check } from './manager/probes.ts'
export {
  manager,
  untilSignalled,
  type Manager,
  type ManagerOptions,
  type Runnable,
  type RunnableOptions,
} from './manager/manager.ts'
export type { AdmissionHooks, AdmissionInfo } from './webhook/admission.ts'
export type { SelfIssuedOptions } from './webhook/certificate-keeper.ts'
export { convert, defineConversion, type Conversion, type Spoke } from './webhook/conversion.ts'
