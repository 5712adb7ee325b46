/** Ports on the loopback address that another process may have. */
import { createServer } from 'node:net'

/** On `port` when nobody else has it, else on a free one. */
export async function listenPreferably<T>(port: number, listen: (port: number) => Promise<T>): Promise<T> {
  if (port === 0) return listen(0)
  return listen(port).catch(async (error: unknown) => {
    if (!isTaken(error)) throw error
    return listen(0)
  })
}

export function isTaken(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if (['EADDRINUSE', 'EACCES'].includes((at as NodeJS.ErrnoException).code ?? '')) return true
  return false
}

/** `port` when nobody else has it; else 0, for a free one. */
export async function findPort(port: number): Promise<number> {
  const probe = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => resolve(true))
  })
  await new Promise<void>((resolve) => probe.close(() => resolve()))
  return isFree ? port : 0
}
