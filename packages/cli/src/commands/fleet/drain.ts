/**
 * `seamark drain CLUSTER` and `seamark undrain CLUSTER`: move all leaves away from a cluster, make before break, and back.
 * Shows first what it will do, and refuses what would leave a host without a serving cluster.
 */
import { parseDurationMs, poll, systemClock, timestamp } from '@seamark/kube'
import { Cluster, LeafIngress, previewDrain } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addKubeFlags, type KubeFlags, openCluster } from '../../flags/kube-flags.ts'

interface Flags extends KubeFlags {
  wait?: boolean
  timeout: string
  deadline?: string
  force?: boolean
  config?: string
}

const POLL_MS = 500

export function build(io: Io): Command {
  const command = addKubeFlags(
    new Command().description('move all leaves away from a cluster, without a gap in service'),
  )
    .argument('<cluster>')
    .option('--wait', 'wait until no leaf is left on the cluster')
    .option('--timeout <seconds>', 'how long --wait waits', '900')
    .option(
      '--deadline <duration>',
      'from then on wait only for DNS caches, not for drainSeconds of policies, and report what is left; such as 30m',
    )
    .option('--force', 'also when a host has no other cluster that serves it; it then stays where it is')
    .option('--config <file>', 'accepted for symmetry with other commands; the hub alone is read')
  return command.action(async (name: string, flags: Flags) => drain(io, name, flags))
}

export function buildUndrain(io: Io): Command {
  const command = addKubeFlags(new Command().description('let a drained cluster take leaves and traffic again'))
  return command.argument('<cluster>').action(async (name: string, flags: KubeFlags) => {
    const cluster = await openCluster(io, flags)
    try {
      await findCluster(cluster.client, name)
      await cluster.client.patch(Cluster, name, 'merge', { spec: { drain: { enabled: false, deadline: null } } })
      io.stdout.write(`cluster ${name} takes leaves again\n`)
    } finally {
      await cluster.close()
    }
  })
}

async function drain(io: Io, name: string, flags: Flags): Promise<void> {
  const timeoutMs = Number(flags.timeout) * 1000
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0)
    throw new CommandError(`--timeout ${flags.timeout} is no number of seconds`, EXIT.usage)
  const deadlineMs = flags.deadline === undefined ? undefined : parseDurationMs(flags.deadline)
  if (flags.deadline !== undefined && deadlineMs === undefined)
    throw new CommandError(`--deadline ${flags.deadline} is no duration like 45s or 30m`, EXIT.usage)
  const deadline = deadlineMs === undefined ? undefined : timestamp(Date.now() + deadlineMs)
  const cluster = await openCluster(io, flags)
  const { client } = cluster
  try {
    await findCluster(client, name)
    await showDrain(io, client, name, flags.force === true)
    await client.patch(Cluster, name, 'merge', {
      spec: { drain: { enabled: true, ...(deadline !== undefined && { deadline }) } },
    })
    io.stdout.write(`cluster ${name} is draining${deadline === undefined ? '' : `, deadline ${deadline}`}\n`)
    if (flags.wait === true) await waitUntilEmpty(io, client, name, timeoutMs)
  } finally {
    await cluster.close()
  }
}

/** Says what a drain moves where; refuses one after which a host has no cluster, unless it is forced. */
export async function showDrain(
  io: Io,
  client: Parameters<typeof previewDrain>[0],
  name: string,
  isForced: boolean,
): Promise<void> {
  const { moves, dark } = await previewDrain(client, name, io.signal)
  for (const { root, hosts, to, spares } of moves) {
    const where =
      to.length > 0
        ? `stays on ${to.join(', ')}`
        : spares.length > 0
          ? `moves to one of ${spares.join(', ')}`
          : 'no other cluster serves it'
    io.stdout.write(`${root} (${hosts.join(', ')}): ${where}\n`)
  }
  if (moves.length === 0) io.stdout.write(`cluster ${name} has no leaves\n`)
  if (dark.length > 0 && !isForced)
    throw new CommandError(
      `${dark.join(', ')} would have no cluster that serves; place it on another cluster first, or use --force`,
      EXIT.refused,
    )
}

/** One line per change: on a terminal and elsewhere. */
export async function waitUntilEmpty(
  io: Io,
  client: Parameters<typeof previewDrain>[0],
  name: string,
  timeoutMs: number,
): Promise<void> {
  const startMs = Date.now()
  const { signal } = io
  let left = ''
  let shown = ''
  const isEmpty = async (): Promise<true | undefined> => {
    const { items } = await client.list(LeafIngress, { labelSelector: `seamark.io/cluster=${name}`, signal })
    if (items.length === 0) return true
    const counts = new Map<string, number>()
    for (const { status } of items) {
      const until = status?.waitsUntil === undefined ? '' : ` until ${status.waitsUntil}`
      const state = `${status?.phase ?? 'Pending'} ${status?.reason ?? ''}`.trim() + until
      counts.set(state, (counts.get(state) ?? 0) + 1)
    }
    const text = [...counts]
      .map(([state, count]) => `${count} ${state}`)
      .sort()
      .join(', ')
    left = items.length === 1 ? '1 leaf is' : `${items.length} leaves are`
    if (text !== shown) io.stdout.write(`${left} left: ${text}\n`)
    shown = text
    return undefined
  }
  const found = await poll(isEmpty, { clock: systemClock, intervalMs: POLL_MS, timeoutMs, signal })
  if (found === true)
    io.stdout.write(`no leaf is left on cluster ${name}, after ${((Date.now() - startMs) / 1000).toFixed(1)} s\n`)
  else if (!signal.aborted)
    throw new CommandError(
      `${left} still on cluster ${name} after ${timeoutMs / 1000} s: ${shown}; the drain continues, see seamark cluster list and seamark tree HOST`,
      EXIT.timeout,
    )
}

export async function findCluster(client: Parameters<typeof previewDrain>[0], name: string): Promise<Cluster> {
  // A list, because `find` has the same result for an object that is not there and for a kind that the server does not know.
  const { items } = await client.list(Cluster)
  const found = items.find(({ metadata }) => metadata.name === name)
  if (found !== undefined) return found
  const names = items.map(({ metadata }) => metadata.name).join(', ')
  throw new CommandError(
    `there is no Cluster ${name}; ${names === '' ? 'none is registered, seamark cluster add registers one' : `registered: ${names}`}`,
  )
}
