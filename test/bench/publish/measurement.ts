/**
 * One life of publish on one API server, and the raw loop on two others, before and after it: everything the figures are read
 * from. A machine that is slower in one minute than in the next would otherwise be in the ratio.
 */
import { isReal, moveTo, startCluster } from './cluster.ts'
import { MOVED_ADDRESS } from './objects.ts'
import { measureLatency, occupyCore, runRaw, startEcho, startSubject, type Usage } from './programs.ts'

export interface Measurement {
  readonly converge: number
  readonly cpu: number
  readonly rss: number
  readonly stall: number
  readonly restart: number
  readonly restartWrites: number
  readonly move: number
  readonly latency: number
}

export async function measure(sources: number): Promise<Measurement> {
  const type = isReal ? 'real' : 'embedded'
  const before = await measureRaw(type, sources)
  const ours = await measureOurs(type, sources)
  const after = await measureRaw(type, sources)
  return {
    converge: ours.converged.wallSeconds / mean(before.children.wallSeconds, after.children.wallSeconds),
    cpu: ours.converged.cpuSeconds / mean(before.children.cpuSeconds, after.children.cpuSeconds),
    rss: ours.peakMb,
    stall: ours.stallMs,
    restart: ours.decided.wallSeconds / ours.list.wallSeconds,
    restartWrites: ours.decided.writes,
    move: ours.moveSeconds / mean(before.move.wallSeconds, after.move.wallSeconds),
    latency: ours.latency,
  }
}

async function measureOurs(type: 'real' | 'embedded', sources: number) {
  const cluster = await startCluster(type)
  try {
    await runRaw(cluster.path, sources, 'proxies')
    const first = await startSubject(cluster.path, { step: sources })
    const converged = await first.until(({ writes }) => writes === 2 * sources)
    const { peakMb, stallMs } = await first.stop()

    const list = await runRaw(cluster.path, sources, 'list')
    const second = await startSubject(cluster.path, { sources, step: sources })
    const decided = await second.until(({ event }) => event === 'decided')
    const movedAt = performance.now()
    await moveTo(cluster, MOVED_ADDRESS)
    await second.until(({ writes }) => writes === sources)
    const moveSeconds = (performance.now() - movedAt) / 1_000
    await second.until(({ event, writes }) => event === 'idle' && writes >= sources)
    const seen = await measureLatency(cluster.path, sources)
    await second.stop()
    // The same sources again would be updates: the bare client gets names of its own.
    const echo = await startEcho(cluster.path)
    const latency = seen / (await measureLatency(cluster.path, 2 * sources))
    await echo.stop()
    return { converged, peakMb, stallMs, list, decided, moveSeconds, latency }
  } finally {
    await cluster.stop()
  }
}

/** The ratio of `converge` while another process keeps one core busy. */
export async function convergeBusy(sources: number): Promise<number> {
  const type = isReal ? 'real' : 'embedded'
  const busy = await occupyCore()
  try {
    const before = await convergeRaw(type, sources)
    const cluster = await startCluster(type)
    let ours: number
    try {
      await runRaw(cluster.path, sources, 'proxies')
      const subject = await startSubject(cluster.path, { step: sources })
      ours = (await subject.until(({ writes }) => writes === 2 * sources)).wallSeconds
      await subject.stop()
    } finally {
      await cluster.stop()
    }
    return ours / mean(before, await convergeRaw(type, sources))
  } finally {
    await busy.stop()
  }
}

async function convergeRaw(type: 'real' | 'embedded', sources: number): Promise<number> {
  const cluster = await startCluster(type)
  try {
    return (await runRaw(cluster.path, sources, 'children')).wallSeconds
  } finally {
    await cluster.stop()
  }
}

async function measureRaw(type: 'real' | 'embedded', sources: number): Promise<{ children: Usage; move: Usage }> {
  const cluster = await startCluster(type)
  try {
    const children = await runRaw(cluster.path, sources, 'children')
    return { children, move: await runRaw(cluster.path, sources, 'move') }
  } finally {
    await cluster.stop()
  }
}

function mean(a: number, b: number): number {
  return (a + b) / 2
}

/** CPU-seconds of a convergence over this many sources on the embedded server. */
export async function cpuFor(sources: number): Promise<number> {
  const cluster = await startCluster('embedded')
  try {
    await runRaw(cluster.path, sources, 'proxies')
    const subject = await startSubject(cluster.path, { step: sources })
    const { cpuSeconds } = await subject.until(({ writes }) => writes === 2 * sources)
    await subject.stop()
    return cpuSeconds
  } finally {
    await cluster.stop()
  }
}
