/**
 * `seamark shift HOST --to CLUSTER --steps 5,25,50,100`: move the traffic of a host to one cluster in steps. Each step sets
 * weights and waits until every endpoint has them; the next one follows only while the target serves.
 *
 * Guarantee: however it ends before the last step, it says what share the cluster has, and the commands that go on and back.
 */
import { Ingress, poll, sleep, systemClock, timestamp } from '@seamark/kube'
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
const PAUSE = '60'
const TIMEOUT = '120'

export function build(io: Io): Command {
  const command = addKubeFlags(new Command().description('move the traffic of a host to one cluster, in steps'))
    .argument('<host>')
    .requiredOption('--to <cluster>', 'the cluster that gets the traffic')
    .option('--steps <percentages>', 'shares of the cluster, one after the other', '5,25,50,100')
    .option('--pause <seconds>', 'between two steps', PAUSE)
    .option('--timeout <seconds>', 'how long a step may take', TIMEOUT)
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
type Global = HostTrace['roots'][number]['global']

/** What it has done so far. */
interface Stand {
  /** The last share that was written; undefined: none. */
  share: number | undefined
  /** Shares that are left, with the last one as long as not every endpoint has it. */
  left: readonly number[]
  /** The command that undoes all of it; set before the first write. */
  back: string
}

async function shift(io: Io, client: Client, host: string, steps: readonly number[], flags: Flags): Promise<void> {
  const { global, others } = await check(client, host, flags.to)
  if (others.length === 0) {
    io.stdout.write(`${host} is on ${flags.to} alone: all of its traffic goes there\n`)
    return
  }
  io.stdout.write(
    `${host}: ${steps.map((step) => `${step} %`).join(', ')} to ${flags.to}, the rest to ${others.join(', ')}\n`,
  )
  const stand: Stand = { share: undefined, left: steps, back: '' }
  const describe = (): string => describeStand(stand, host, flags)
  try {
    await takeSteps(io, client, { host, global, others, steps, flags }, stand)
  } catch (error) {
    if (io.signal.aborted) throw new CommandError(`interrupted: ${describe()}`)
    if (error instanceof CommandError) throw new CommandError(`${error.message}; ${describe()}`, error.code)
    throw error
  }
  if (stand.left.length > 0) throw new CommandError(`interrupted: ${describe()}`)
  io.stdout.write(`to go back: ${stand.back}\n`)
}

interface Shift {
  readonly host: string
  readonly global: Global
  readonly others: readonly string[]
  readonly steps: readonly number[]
  readonly flags: Flags
}

/** Returns early when it is interrupted. */
async function takeSteps(
  io: Io,
  client: Client,
  { host, global, others, steps, flags }: Shift,
  stand: Stand,
): Promise<void> {
  const pauseMs = Number(flags.pause) * 1000
  const startMs = Date.now()
  for (const [index, step] of steps.entries()) {
    if (index > 0 && pauseMs > 0) {
      io.stdout.write(`next: ${step} % at ${timestamp(Date.now() + pauseMs)}\n`)
      await sleep(systemClock, pauseMs, io.signal)
    }
    if (io.signal.aborted) return
    await check(client, host, flags.to)
    const weights = weightsOf(flags.to, others, step)
    const target = await findTarget(client, global)
    stand.back ||= backCommand(target, weights, flags)
    io.stdout.write(`step ${index + 1} of ${steps.length}: ${step} %\n`)
    await writeWeights(client, target, weights)
    stand.share = step
    await waitForWeights(io, client, global, weights, Number(flags.timeout) * 1000)
    if (io.signal.aborted) return
    stand.left = steps.slice(index + 1)
    io.stdout.write(`${step} % of ${host} go to ${flags.to}, after ${((Date.now() - startMs) / 1000).toFixed(1)} s\n`)
  }
}

function describeStand({ share, left, back }: Stand, host: string, flags: Flags): string {
  const on = `to go on: seamark shift ${host} --to ${flags.to} --steps ${left.join(',')}${sameFlags(flags)}`
  if (share === undefined) return `nothing was changed; ${on}`
  const isPending = left.includes(share)
  return `${share} % of ${host} ${isPending ? 'were requested for' : 'go to'} ${flags.to}, and that stays so\n${on}\nto go back: ${back}`
}

function sameFlags({ pause, timeout, kubeconfig, context }: Flags): string {
  const given = { pause: pause === PAUSE ? undefined : pause, timeout: timeout === TIMEOUT ? undefined : timeout }
  return Object.entries({ ...given, kubeconfig, context })
    .flatMap(([name, value]) => (value === undefined ? [] : [` --${name} ${value}`]))
    .join('')
}

/** The weights of all clusters; with 100 % the others serve only when nothing else does. */
function weightsOf(to: string, others: readonly string[], step: number): Record<string, number> {
  const rest = Math.round(((100 - step) * 10) / Math.max(1, others.length))
  return { [to]: step * 10, ...Object.fromEntries(others.map((name) => [name, rest])) }
}

async function check(client: Client, host: string, to: string): Promise<{ global: Global; others: string[] }> {
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

/** Where the weights of a root are: in the policy that names it alone; without one, in its annotations. */
type Target =
  | { readonly kind: 'policy'; readonly key: string; readonly traffic: Traffic | undefined }
  | { readonly kind: 'annotations'; readonly key: string; readonly annotations: Readonly<Record<string, string>> }

type Traffic = NonNullable<GlobalIngressPolicy['spec']['traffic']>

const STRATEGY_ANNOTATION = 'seamark.io/strategy'
const WEIGHT_ANNOTATION = 'seamark.io/weight.'

async function findTarget(client: Client, { spec, metadata, status }: Global): Promise<Target> {
  const { namespace = '' } = metadata
  const { kind, name } = spec.rootRef
  const [, policyKey] = /^GlobalIngressPolicy (.+)$/.exec(status?.policy ?? '') ?? []
  if (policyKey !== undefined) {
    const { targetRefs = [], selector, traffic } = (await client.get(GlobalIngressPolicy, policyKey)).spec
    const isOwn = targetRefs.length === 1 && targetRefs[0]?.kind === kind && targetRefs[0].name === name
    if (!isOwn || selector !== undefined)
      throw new CommandError(
        `GlobalIngressPolicy ${policyKey} is not only for ${kind} ${namespace}/${name}: a shift would change others; create one whose targetRefs name it alone`,
        EXIT.refused,
      )
    return { kind: 'policy', key: policyKey, traffic }
  }
  if (kind !== 'Ingress')
    throw new CommandError(`${kind} ${name} has no policy that names it; create one`, EXIT.refused)
  const key = `${namespace}/${name}`
  return { kind: 'annotations', key, annotations: (await client.get(Ingress, key)).metadata.annotations ?? {} }
}

async function writeWeights(client: Client, target: Target, weights: Record<string, number>): Promise<void> {
  if (target.kind === 'policy') {
    await client.patch(GlobalIngressPolicy, target.key, 'merge', {
      spec: { traffic: { strategy: 'weighted', weights } },
    })
    return
  }
  const annotations = Object.fromEntries(
    Object.entries(weights).map(([cluster, weight]) => [`${WEIGHT_ANNOTATION}${cluster}`, String(weight)]),
  )
  await client.patch(Ingress, target.key, 'merge', {
    metadata: { annotations: { [STRATEGY_ANNOTATION]: 'weighted', ...annotations } },
  })
}

/** Makes of the weights what they were before the shift. */
function backCommand(target: Target, weights: Record<string, number>, { kubeconfig, context }: Flags): string {
  const [namespace = '', name = ''] = target.key.split('/')
  const flags = `${kubeconfig === undefined ? '' : ` --kubeconfig ${kubeconfig}`}${context === undefined ? '' : ` --context ${context}`}`
  const kubectl = `kubectl${flags} -n ${namespace}`
  if (target.kind === 'policy') {
    const { strategy = null, weights: before } = target.traffic ?? {}
    const back = Object.fromEntries(Object.keys(weights).map((cluster) => [cluster, before?.[cluster] ?? null]))
    const patch = { spec: { traffic: { strategy, weights: before === undefined ? null : back } } }
    return `${kubectl} patch globalingresspolicy ${name} --type merge -p '${JSON.stringify(patch)}'`
  }
  const keys = [STRATEGY_ANNOTATION, ...Object.keys(weights).map((cluster) => `${WEIGHT_ANNOTATION}${cluster}`)]
  const values = keys.map((key) => {
    const value = target.annotations[key]
    return value === undefined ? `${key}-` : `${key}=${value}`
  })
  return `${kubectl} annotate ingress ${name} --overwrite ${values.join(' ')}`
}

async function waitForWeights(
  io: Io,
  client: Client,
  { spec }: Global,
  weights: Record<string, number>,
  timeoutMs: number,
): Promise<void> {
  let shown = ''
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
    const all = Object.entries(weights)
    const done = scale > 0 ? all.filter(isEqual).length : 0
    if (done === all.length) return true
    const text = `  ${done} of ${all.length} clusters have their weight`
    if (text !== shown) io.stdout.write(`${text}\n`)
    shown = text
    return undefined
  }
  const { signal } = io
  const found = await poll(hasWeights, { clock: systemClock, intervalMs: POLL_MS, timeoutMs, signal })
  if (found === undefined && !signal.aborted)
    throw new CommandError('the endpoints did not get their weights in time; the manager may be stopped', EXIT.timeout)
}
