/**
 * The manager: one process with its clusters, controllers, servers and lease.
 *
 * Flow (start): metrics and probes → webhooks → caches, until they are synced → runnables → leader election →
 * controllers. Webhooks answer before any cache lists, because a list of an old version may need their conversion.
 * Flow (stop): runnables → controllers → caches → webhooks → probes and metrics → lease, so that nothing writes when
 * another process may lead, and probes and metrics answer while everything drains.
 *
 * Guarantees: `run` settles when everything has really stopped, within the grace period. It rejects with the first
 * failure of any part, after stopping the others; with `LeadershipLost` without waiting for anything.
 * Caveats: `run` is called once. A process that lost leadership must end.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { defineAggregator, type Aggregator, type AggregatorOptions } from './aggregator.ts'
import type { Index, Reader } from './cache.ts'
import { untilAborted } from './cache-sync.ts'
import type { Client } from './client.ts'
import { systemClock, type Clock } from './clock.ts'
import { connect, type Cluster } from './cluster.ts'
import { loadConfig } from './config.ts'
import type { Context, Environment } from './context.ts'
import { defineController, type Controller, type ControllerBuilder, type ControllerOptions } from './controller.ts'
import { createDefaultBook } from './default-book.ts'
import { type Duration, durationMs } from './duration.ts'
import { KubeError } from './errors.ts'
import { createRecorder } from './events.ts'
import { createFleet, type Fleet } from './fleet.ts'
import type { Informer } from './informer.ts'
import { createElection, LeadershipLost, openFence, type Election, type LeaseOptions } from './lease.ts'
import { startListener, type Listener } from './listener.ts'
import { createLogger, type Logger } from './log.ts'
import { createMetrics, type Metrics } from './metrics.ts'
import { kindName, type Immutable, type Kind, type Obj } from './object.ts'
import type { Next } from './outcome.ts'
import { metricsHandler, probesHandler, type Check } from './probes.ts'
import type { Signals } from './workers.ts'
