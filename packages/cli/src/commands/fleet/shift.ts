/**
 * `seamark shift HOST --to CLUSTER --steps 5,25,50,100`: move the traffic of a host to one cluster in steps. Each step sets
 * weights and waits until every endpoint has them; the next one follows only while the target serves.
 */
import { Ingress, poll, sleep, systemClock } from '@seamark/kube'
import { DNSLoadBalancerEndpoint, GlobalIngressPolicy, type HostTrace, traceHost } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addKubeFlags, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'

interface Flags extends KubeFlags {
  to: string
  steps: string
  pause: string
  timeout: string
}

const POLL_MS = 250

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('move the traffic of a host to one cluster, in steps'))
    .argument('<host>')
    .requiredOption('--to <cluster>', 'the cluster that gets the traffic')
    .option('--steps <percentages>', 'shares of the cluster, one after the other', '5,25,50,100')
    .option('--pause <seconds>', 'between two steps', '60')
    .option('--timeout <seconds>', 'how long a step may take', '120')
  return command.action(async (host: string, flags: Flags) => {
    const steps = flags.steps.split(',').map((text) => Number(text.trim()))
    if (steps.length === 0 || steps.some((step) => !Number.isInteger(step) || step < 1 || step > 100))
      throw new CommandError(`--steps ${flags.steps} is no list of percentages from 1 to 100`, EXIT.usage)
    for (const [flag, text] of Object.entries({ pause: flags.pause, timeout: flags.timeout }))
      if (!(Number(text) >= 0)) throw new CommandError(`--${flag} ${text} is no number of seconds`, EXIT.usage)
    const cluster = await openCluster(io, flags)
    try {
      await shift(io, cluster.client, host, steps, flags)
    } finally {
      await cluster.close()
    }
  })
}

type Client = Parameters<typeof traceHost>[0]

async function shift(io: Io, client: Client, host: string, steps: readonly number[], flags: Flags): Promise<void> {
  const { global, others } = await check(client, host, flags.to)
  if (others.length === 0) {
    io.stdout.write(`${host} is on ${flags.to} alone: all of its traffic goes there\n`)
    return
  }
  io.stdout.write(
    `${host}: ${steps.map((step) => `${step} %`).join(', ')} to ${flags.to}, the rest to ${others.join(', ')}\n`,
  )
  for (const [index, step] of steps.entries()) {
    if (index > 0) await sleep(systemClock, Number(flags.pause) * 1000, io.signal)
    if (io.signal.aborted) return
    await check(client, host, flags.to)
    const weights = weightsOf(flags.to, others, step)
    await writeWeights(client, global, weights)
    await waitForWeights(io, client, global, weights, Number(flags.timeout) * 1000)
    io.stdout.write(`${step} % of ${host} go to ${flags.to}\n`)
  }
}

/** The weights of all clusters; with 100 % the others serve only when nothing else does. */
function weightsOf(to: string, others: readonly string[], step: number): Record<string, number> {
  const rest = Math.round(((100 - step) * 10) / Math.max(1, others.length))
  return { [to]: step * 10, ...Object.fromEntries(others.map((name) => [name, rest])) }
}

async function check(
  client: Client,
  host: string,
  to: string,
): Promise<{ global: HostTrace['roots'][number]['global']; others: string[] }> {
  const trace = await traceHost(client, host)
  const traced = trace?.roots[0]
  if (traced === undefined) throw new CommandError(`no root of the fleet names ${host}`)
  const target = traced.leaves.find(({ cluster }) => cluster === to)
  if (target?.phase !== 'Active')
    throw new CommandError(
      `${host} has ${target === undefined ? 'no leaf' : `a leaf that is ${target.phase} (${target.reason})`} on cluster ${to}; it must serve before it gets more traffic`,
      EXIT.refused,
    )
  return {
    global: traced.global,
    others: traced.leaves.filter(({ cluster }) => cluster !== to).map(({ cluster }) => cluster),
  }
}

/** Into the policy of the root; without one, into its annotations. */
async function writeWeights(
  client: Client,
  { spec, metadata, status }: HostTrace['roots'][number]['global'],
  weights: Record<string, number>,
): Promise<void> {
  const { namespace = '' } = metadata
  const { kind, name } = spec.rootRef
  const [, policyKey] = /^GlobalIngressPolicy (.+)$/.exec(status?.policy ?? '') ?? []
  if (policyKey !== undefined) {
    const { targetRefs = [], selector } = (await client.get(GlobalIngressPolicy, policyKey)).spec
    const isOwn = targetRefs.length === 1 && targetRefs[0]?.kind === kind && targetRefs[0].name === name
    if (!isOwn || selector !== undefined)
      throw new CommandError(
        `GlobalIngressPolicy ${policyKey} is not only for ${kind} ${namespace}/${name}: a shift would change others; create one whose targetRefs name it alone`,
        EXIT.refused,
      )
    await client.patch(GlobalIngressPolicy, policyKey, 'merge', {
      spec: { traffic: { strategy: 'weighted', weights } },
    })
    return
  }
  if (kind !== 'Ingress')
    throw new CommandError(`${kind} ${name} has no policy that names it; create one`, EXIT.refused)
  const annotations = Object.fromEntries(
    Object.entries(weights).map(([cluster, weight]) => [`seamark.io/weight.${cluster}`, String(weight)]),
  )
  await client.patch(Ingress, `${namespace}/${name}`, 'merge', {
    metadata: { annotations: { 'seamark.io/strategy': 'weighted', ...annotations } },
  })
}

async function waitForWeights(
  io: Io,
  client: Client,
  { spec }: HostTrace['roots'][number]['global'],
  weights: Record<string, number>,
  timeoutMs: number,
): Promise<void> {
  const hasWeights = async (): Promise<true | undefined> => {
    const { items } = await client.list(DNSLoadBalancerEndpoint, {
      labelSelector: `seamark.io/root-uid=${spec.rootRef.uid}`,
    })
    const byCluster = new Map<string, number>()
    for (const {
      metadata,
      spec: { weight = 1 },
    } of items) {
      const cluster = metadata.labels?.['seamark.io/cluster'] ?? ''
      byCluster.set(cluster, (byCluster.get(cluster) ?? 0) + weight)
    }
    const [first] = Object.keys(weights)
    const scale = (byCluster.get(first ?? '') ?? 0) / (weights[first ?? ''] ?? 1)
    const isEqual = ([name, weight]: [string, number]) => Math.abs((byCluster.get(name) ?? 0) - weight * scale) < 0.5
    return scale > 0 && Object.entries(weights).every(isEqual) ? true : undefined
  }
  const { signal } = io
  const found = await poll(hasWeights, { clock: systemClock, intervalMs: POLL_MS, timeoutMs, signal })
  if (found === undefined && !signal.aborted)
    throw new CommandError('the endpoints did not get their weights in time; the manager may be stopped', EXIT.timeout)
}
