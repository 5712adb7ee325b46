/**
 * The tour: a cluster is lost, another one is drained, and most of the sources are deleted, each with what `explain` says about
 * it. It plays on the world that stays, and leaves it as it was. Every printed figure is measured during the run.
 */
import { poll, systemClock } from '@seamark/kube'
import type { Explanation } from '@seamark/operator'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { build as buildExplain } from '../explain/explain.ts'
import { build as buildDrain, buildUndrain } from '../fleet/drain.ts'
import { build as buildApprove } from '../records/approve.ts'
import type { Faults } from './faults.ts'
import { runVerb } from './own-command.ts'
import type { Printer } from './printer.ts'
import { SHOP, ZONE } from './world/objects.ts'
import { TrafficClient } from './world/traffic.ts'
import type { World } from './world/world.ts'

const POLL_MS = 25
/** Then what is said is printed as it is. */
const CONFIRMED_WITHIN_MS = 2_000
const LIMIT_MS = 30_000
const RATE = 20

export interface TourParts {
  readonly world: World
  readonly faults: Faults
  readonly printer: Printer
  readonly io: Io
}

interface Tour extends TourParts {
  readonly signal: AbortSignal
}

/** Rejects with exit code 4 when something does not come in time. */
export async function playTour(parts: TourParts, signal: AbortSignal): Promise<void> {
  for (const part of [showHosts, loseCluster, drainCluster, loseSources]) {
    if (signal.aborted) return
    await part({ ...parts, signal })
  }
}

async function showHosts(parts: Tour): Promise<void> {
  const { world, printer, faults } = parts
  printer.heading('Part 1: one host on three clusters')
  await untilAnswered(parts, SHOP, [...world.members.keys()])
  await faults.untilBase(LIMIT_MS)
  for (const host of [SHOP, `api.${ZONE}`, `app.${ZONE}`, `team-1.${ZONE}`, `any.eu1.${ZONE}`])
    printer.line(`${host} answers ${clustersOf(world, await untilAny(parts, host))}`)
  await explainTo(parts, SHOP)
}

/** Its API server, its gateway and everything behind it. */
async function loseCluster(parts: Tour): Promise<void> {
  const { faults, printer } = parts
  printer.heading('Part 2: a cluster is lost')
  printer.line(`a client requests ${SHOP} ${RATE} times a second, and tries the next address when one refuses`)
  await withClient(parts, 'all', async () => {
    printer.line(await faults.stop('ap1', 'cluster'))
    await untilAnswered(parts, SHOP, ['eu1', 'us1'])
  })
  await explainTo(parts, SHOP)
  printer.line(await faults.start('ap1', 'cluster'))
  await untilAnswered(parts, SHOP, ['eu1', 'us1', 'ap1'])
}

/** Make before break: DNS first, then the caches of resolvers, then the cluster. */
async function drainCluster(parts: Tour): Promise<void> {
  const { printer, world, io } = parts
  printer.heading('Part 3: a cluster is drained')
  printer.line(`a client requests ${SHOP} ${RATE} times a second, and never tries a second address`)
  await withClient(parts, 'one', async () => {
    await runVerb(io, buildDrain, ['us1', '--wait', '--timeout', '60', ...hubFlags(world)], (line) =>
      printer.line(line),
    )
  })
  await explainTo(parts, SHOP)
  await runVerb(io, buildUndrain, ['us1', ...hubFlags(world)], (line) => printer.line(line))
  await untilAnswered(parts, SHOP, ['eu1', 'us1', 'ap1'])
}

/** Held, approved, and brought back. */
async function loseSources(parts: Tour): Promise<void> {
  const { faults, printer, world, io } = parts
  printer.heading('Part 4: most of the sources are deleted at once')
  const { text, code, host } = await faults.badRelease()
  printer.line(text)
  // Whether a source is gone is asked again for each explanation, and may not be confirmed at once.
  const confirmed = await poll(
    async () => {
      const explanation = await explainHost(parts, host)
      return explanation.verdict.reason === code ? explanation : undefined
    },
    { clock: systemClock, intervalMs: POLL_MS, timeoutMs: CONFIRMED_WITHIN_MS, signal: parts.signal },
  )
  printExplanation(parts, confirmed ?? (await explainHost(parts, host)))
  const held = JSON.parse(await runVerb(io, buildApprove, ['-o', 'json', ...hubFlags(world)])) as {
    held: { id: string }[]
  }
  for (const { id } of held.held) {
    const [first = ''] = (await runVerb(io, buildApprove, [id, ...hubFlags(world)])).split('\n')
    printer.line(`seamark approve ${id}: ${first.replace(`${id}: `, '')}`)
  }
  const started = performance.now()
  await until(
    parts,
    () => `${host} still answers`,
    async () => ((await world.names.ask(host)).length === 0 ? true : undefined),
  )
  printer.line(`after ${secondsSince(started)} s: ${host} does not answer any more`)
  await faults.reset()
  printer.line(`the sources are back: ${host} answers ${clustersOf(world, await world.names.ask(host))}`)
}

/** Requests all the while; then says how many failed. */
async function withClient({ world, printer }: Tour, tries: 'one' | 'all', body: () => Promise<void>): Promise<void> {
  const { names, hub } = world
  const { resolver, address: server } = names
  const client = new TrafficClient({ host: SHOP, perSecond: RATE, tries, resolver, server, port: hub.port })
  try {
    await body()
  } finally {
    const { sent, failed, failures } = await client.stop()
    printer.line(`the client sent ${sent} requests: ${failed} failed`)
    for (const failure of failures) printer.line(`failed: ${failure}`)
  }
}

/** Addresses with the cluster of each. */
function clustersOf({ members, hub }: World, addresses: readonly string[]): string {
  const names = new Map([...members.values(), hub].map(({ address, name }) => [address, name]))
  return addresses.map((address) => `${address} (${names.get(address) ?? 'nobody'})`).join(', ')
}

const hubFlags = ({ kubeconfigPath }: World): string[] => ['--kubeconfig', kubeconfigPath]

async function explainTo(tour: Tour, host: string): Promise<void> {
  printExplanation(tour, await explainHost(tour, host))
}

async function explainHost({ world, io }: Tour, host: string): Promise<Explanation> {
  const text = await runVerb(io, buildExplain, [
    host,
    '-o',
    'json',
    '--server',
    world.dns,
    '--config',
    world.configPath,
    ...hubFlags(world),
  ])
  return JSON.parse(text) as Explanation
}

/** The verdict, and the hops that are not as they should be. */
function printExplanation({ printer }: Tour, { verdict, hops }: Explanation): void {
  printer.line(`seamark explain: ${verdict.text}`)
  for (const hop of hops)
    if (hop.state === 'degraded' || hop.state === 'broken')
      printer.line(`  ${hop.name}: ${hop.reason === undefined ? '' : `${hop.reason}: `}${hop.text}`)
}

async function untilAnswered(tour: Tour, host: string, names: readonly string[]): Promise<void> {
  const { world, printer } = tour
  const started = performance.now()
  const wanted = names.map((name) => world.member(name).address).sort()
  let last: readonly string[] = []
  const check = async () => {
    last = await world.names.ask(host)
    return last.join() === wanted.join() ? last : undefined
  }
  const answer = await until(tour, () => `${host} answers ${clustersOf(world, last)}, not ${names.join(', ')}`, check)
  printer.line(`after ${secondsSince(started)} s: ${host} answers ${clustersOf(world, answer)}`)
}

async function untilAny(tour: Tour, host: string): Promise<readonly string[]> {
  const failure = () => `${host} does not answer`
  return until(tour, failure, async () => {
    const found = await tour.world.names.ask(host)
    return found.length > 0 ? found : undefined
  })
}

async function until<T>(
  { signal }: Tour,
  describeFailure: () => string,
  check: () => Promise<T | undefined>,
): Promise<T> {
  const found = await poll(check, { clock: systemClock, intervalMs: POLL_MS, timeoutMs: LIMIT_MS, signal })
  if (found !== undefined) return found
  throw new CommandError(`after ${LIMIT_MS / 1_000} s ${describeFailure()}`, EXIT.timeout)
}

function secondsSince(startedMs: number): string {
  return ((performance.now() - startedMs) / 1000).toFixed(1)
}
