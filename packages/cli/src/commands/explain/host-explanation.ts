/**
 * What `seamark explain` and `seamark tree` say about a host: the hops, and the verdict from what its DNS servers answer now.
 * Read-only. With providers in the configuration the plan and the records of the zone are read as the manager reads them.
 */
import { isIP } from 'node:net'
import { createDnsClient, type DnsClient, groupRecords, type ServerAddress } from '@seamark/dns'
import { type Cluster, ConfigMap, messageOf } from '@seamark/kube'
import {
  type AnswerFact,
  canonicalName,
  CONFIGURATION_OBJECT,
  explain,
  type ExplainFacts,
  type ExplainDeps,
  type Explanation,
  findHostAnswers,
  findManagerLease,
  fleetFacts,
  gatherFacts,
  gatherFleetFacts,
  type HostTrace,
  isInvalid,
  isPausedBy,
  isWithin,
  type LoadedConfig,
  PlanReader,
  processGrants,
  publishedAddresses,
  publishOptions,
  recordsInUse,
  RecordsError,
  withAnswered,
  zoneName,
} from '@seamark/operator'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { DEFAULT_NAMESPACE } from '../../flags/kube-flags.ts'

/** As given on the command line: in any case, also with a trailing dot or in another script. Throws CommandError. */
export function readHost(text: string): string {
  const name = canonicalName(text)
  if (isInvalid(name))
    throw new CommandError(`'${text}' is no host such as shop.example.com: ${name.invalid}`, EXIT.usage)
  return name.replace(/\.$/, '')
}

export interface HostQuestion {
  readonly host: string
  readonly cluster: Cluster
  readonly config: LoadedConfig['config']
  /** The configuration is that of the manager, and no default of this command. */
  readonly isConfigured: boolean
  /** `--server` */
  readonly server: string | undefined
  /** What the fleet stored about the host; undefined: it is none of its hosts. */
  readonly trace: HostTrace | undefined
  readonly route?: ExplainFacts['route']
}

export interface HostExplanation {
  readonly explanation: Explanation
  /** With what DNS servers answer now, where they were asked. */
  readonly trace: HostTrace | undefined
}

export async function explainHost(io: Io, question: HostQuestion): Promise<HostExplanation> {
  const { host, cluster, config, trace, route, server } = question
  const namespace = config.namespace || DEFAULT_NAMESPACE
  const hasProviders = recordsInUse(config).providers.length > 0 || config.dns.listen.length > 0
  const lease = await readLease(question, namespace, io.signal)
  const dnsClient = createDnsClient({ tries: 2, timeoutMs: 500 })
  const deps: Deps = {
    cluster,
    isPublishOn: config.publish.enabled,
    ...(hasProviders && { plan: planReader(io, cluster, config, namespace) }),
    answers: async (name, signal) =>
      server === undefined
        ? findHostAnswers(
            name,
            {
              configured: config.fleet.dnsServers,
              dns: config.dns,
              lease,
              primaries: (of) =>
                recordsInUse(config).providers.flatMap((provider) =>
                  provider.type === 'rfc2136' && isWithin(of, provider.zones) ? [provider.server] : [],
                ),
            },
            dnsClient,
            signal,
          )
        : [await ask(dnsClient, server, name, signal)],
    manager: async (signal) => ({
      isPaused: config.pause || (await readPause(cluster, namespace, signal)),
      // The default of a configuration that is not at hand says nothing about the manager.
      mode: question.isConfigured ? config.mode : 'enforce',
      ...(lease !== undefined && { lease }),
    }),
  }
  try {
    const { facts, shown } =
      trace === undefined
        ? { facts: await sourceFacts(question, deps, io.signal), shown: undefined }
        : await rootFacts(host, trace, deps, io.signal)
    const explanation = explain({
      ...facts,
      ...(hasOnlyOwnZones(config) && { ownZones: config.dns.zones.map(zoneName) }),
      ...(route !== undefined && { route }),
    })
    return { explanation, trace: shown }
  } finally {
    await dnsClient.close()
  }
}

type Deps = Omit<ExplainDeps, 'options'>

async function sourceFacts({ host, config }: HostQuestion, deps: Deps, signal: AbortSignal): Promise<ExplainFacts> {
  const namespace = config.namespace || DEFAULT_NAMESPACE
  const options = publishOptions(config.publish, processGrants(config.grants, namespace), {
    fleet: config.fleet.enabled ? config.fleet : undefined,
    balance: config.balance.enabled,
  })
  return gatherFacts(host, { ...deps, options }, signal)
}

/** What DNS servers answer now counts at each leaf, and not what the manager found when it last asked them. */
async function rootFacts(host: string, trace: HostTrace, deps: Deps, signal: AbortSignal) {
  const gathered = await gatherFleetFacts(host, publishedAddresses(trace) ?? [], deps, signal)
  const shown = shownTrace(trace, { ...gathered, ...fleetFacts(trace) })
  return { facts: { ...gathered, ...fleetFacts(shown) }, shown }
}

/** Undefined: the manager uses none, or it may not be read. */
async function readLease({ cluster, config, isConfigured }: HostQuestion, namespace: string, signal: AbortSignal) {
  const { enabled, lease, namespace: own } = config.leaderElection
  if (!enabled) return undefined
  const options = { isExact: isConfigured, nowMs: Date.now(), signal }
  return findManagerLease(cluster.client, `${own || namespace}/${lease}`, options)
}

function shownTrace(trace: HostTrace, { answers = [], published = [], isAnswerPartial }: ExplainFacts): HostTrace {
  if (answers.length === 0) return trace
  const values = [...new Set(answers.flatMap(({ targets }) => targets))]
  // By weight or region an answer has a part of what is answered.
  const isPart = isAnswerPartial === true && values.length > 0 && values.every((value) => published.includes(value))
  return withAnswered(trace, isPart ? published : values)
}

/** The manager's own view of a name. */
function planReader(
  io: Io,
  { client }: Cluster,
  config: LoadedConfig['config'],
  namespace: string,
): NonNullable<ExplainDeps['plan']> {
  const reader = new PlanReader({
    client,
    namespace,
    records: recordsInUse(config),
    dns: config.dns,
    mode: config.mode,
    isPaused: async (signal) => config.pause || readPause({ client }, namespace, signal),
    safety: config.safety,
    grants: processGrants(config.grants, namespace),
    env: io.env,
  })
  return async (host, targets, signal) => {
    try {
      return await reader.ofName(host, targets, signal)
    } catch (error) {
      if (error instanceof RecordsError) throw new CommandError(error.message, EXIT.usage)
      throw error
    }
  }
}

/** Nothing of this configuration answers other names. */
function hasOnlyOwnZones(config: LoadedConfig['config']): boolean {
  const { dns, fleet } = config
  return dns.listen.length > 0 && recordsInUse(config).providers.length === 0 && !fleet.answeredElsewhere
}

async function readPause(
  { client }: Pick<Cluster, 'client'>,
  namespace: string,
  signal: AbortSignal,
): Promise<boolean> {
  const switches = await client.find(ConfigMap, `${namespace}/${CONFIGURATION_OBJECT}`, { signal })
  return isPausedBy(switches?.metadata.annotations)
}

/** Throws CommandError when the flag --server is no address. */
export function parseDnsServer(server: string): ServerAddress {
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<v4>[^:]+))(?::(?<port>\d+))?$/.exec(server)
  const host = match?.groups?.['v6'] ?? match?.groups?.['v4'] ?? server
  if (isIP(host) === 0) throw new CommandError(`--server ${server} is not ADDRESS or ADDRESS:PORT`, EXIT.usage)
  return { address: host, port: Number(match?.groups?.['port'] ?? 53) }
}

/** Any server: also one that answers for others. */
async function ask(client: DnsClient, server: string, name: string, signal: AbortSignal): Promise<AnswerFact> {
  const at = parseDnsServer(server)
  try {
    const replies = await Promise.all(
      ['A', 'AAAA'].map(async (type) => client.query({ server: at, name, type, signal })),
    )
    const sets = replies.flatMap((reply) => groupRecords(reply.message.answers))
    const targets = sets
      .filter((set) => ['A', 'AAAA', 'CNAME'].includes(set.type))
      .flatMap((set) => set.values.map((value) => value.replace(/\.$/, '')))
    return { server, targets: [...new Set(targets)] }
  } catch (error) {
    return { server, targets: [], fault: messageOf(error) }
  }
}
