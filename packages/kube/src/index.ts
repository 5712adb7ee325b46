/** The public surface of @seamark/kube. */
export * from './object.ts'
export * from './errors.ts'
export type * from './client.ts'
export type * from './cache.ts'
export type * from './informer.ts'
export * from './kinds.ts'
export { connect, type Cluster, type ConnectOptions } from './cluster.ts'
export type { ClusterConfig } from './cluster-config.ts'
export type { Exchange, OpenStream, Transport } from './transport/transport.ts'
export { configFromText, loadConfig, type ConfigOptions } from './config.ts'
export type { Credentials, Impersonation, TlsMaterial } from './credentials.ts'
export { loadInCluster } from './in-cluster.ts'
export { parseRemoteConfig, type RemoteConfigOptions } from './remote-config.ts'
export { addressGuard, type AddressGuard, type GuardOptions } from './address-guard.ts'
export { UID_MARK } from './managed-fields.ts'
export { sleep, systemClock, type Clock } from './clock.ts'
export { untilAborted } from './cache-sync.ts'
export { judgeApply, learnDefaults, type ApplyQuestion, type Verdict } from './apply.ts'
export { createDefaultBook, type DefaultBook } from './default-book.ts'
export * from './conditions.ts'
export * from './owner.ts'
export { addFinalizer, nextFinalizerStep, removeFinalizer, type FinalizerStep } from './finalizer.ts'
export * from './predicate.ts'
export {
  createQueue,
  LOW_PRIORITY,
  type AddOptions,
  type Queue,
  type QueueObserver,
  type QueueOptions,
} from './queue.ts'
export { durationMs, type Duration } from './duration.ts'
export { createLogger, Secret as SecretText, type Logger, type LogLevel, type LogOptions } from './log.ts'
export { requeue, Terminal, type Next } from './outcome.ts'
export type { Context, Environment } from './context.ts'
export { createWriter, fencedClient, type StatusOf, type Writer, type WriterDeps } from './writer.ts'
export type {
  ControllerBuilder,
  ControllerOptions,
  Reconciler,
  WatchOptions as ControllerWatchOptions,
} from './controller.ts'
export { watching, type AggregatorOptions, type WatchedKind } from './aggregator.ts'
export {
  createElection,
  LeadershipLost,
  openFence,
  type Election,
  type LeaseOptions,
  type WriteFence,
} from './lease.ts'
export { createRecorder, type EventRecord, type EventType, type Recorder } from './events.ts'
export type { Fleet } from './fleet.ts'
export type { Metrics } from './metrics.ts'
export type { Check } from './probes.ts'
export { manager, untilSignalled, type Manager, type ManagerOptions, type Runnable } from './manager.ts'
export type { AdmissionHooks, AdmissionInfo } from './webhook/admission.ts'
export type { SelfIssuedOptions } from './webhook/certificate-keeper.ts'
export { convert, defineConversion, type Conversion, type Spoke } from './webhook/conversion.ts'
