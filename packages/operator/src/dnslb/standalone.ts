/**
 * `seamark dnslb --watches FILE`: load balancing without any cluster. The file is read again in every pass; a pass whose file
 * cannot be read is skipped, and nothing is removed.
 *
 * Statuses are kept in memory only: stickiness comes from the records, and a restart begins with unknown health, which
 * changes nothing that is published.
 */
import { readFile } from 'node:fs/promises'
import { messageOf, untilAborted } from '@seamark/kube'
import { SETTLED_LIMIT_MS, type StandaloneOptions } from './options.ts'
import { createBalancer } from './standalone-balancer.ts'
import { parseWatches, type Watch } from './watches.ts'

/** Between two passes while no health changes. */
const PASS_MS = 5_000
const SWEEP_MS = 300_000

export async function runStandalone(options: StandaloneOptions, signal: AbortSignal): Promise<void> {
  const { path, clock, log, heartbeat } = options
  let watches = await readWatches(path)
  if ('invalid' in watches) throw new Error(`cannot read watch config '${path}':${watches.invalid}`)
  log.info({ file: path, watches: watches.length }, 'watch config read')
  const balancer = await createBalancer(options, () => watches as readonly Watch[])
  const startedMs = clock.monotonic()
  let sweptMs: number | undefined
  try {
    while (!signal.aborted) {
      const read = await readWatches(path)
      if ('invalid' in read) log.error({ file: path, error: read.invalid }, 'cannot read watch config; nothing changes')
      else {
        watches = read
        const passMs = clock.monotonic()
        const isSettled = await balancer.pass(signal)
        if (sweptMs === undefined || passMs - sweptMs >= SWEEP_MS) {
          await balancer.sweep(signal)
          sweptMs = passMs
        }
        const isOver = isSettled || passMs - startedMs > SETTLED_LIMIT_MS
        if (isOver) options.onSettled?.()
        if (isOver && options.isOnce) return
      }
      heartbeat.tick('dns')
      // There is no manager here, whose controllers would wait.
      await untilAborted(AbortSignal.any([signal, balancer.woken(), AbortSignal.timeout(PASS_MS)]))
    }
  } finally {
    await balancer.stop()
  }
}

async function readWatches(path: string): Promise<readonly Watch[] | { readonly invalid: string }> {
  try {
    return parseWatches(await readFile(path, 'utf8'))
  } catch (error) {
    return { invalid: messageOf(error) }
  }
}
