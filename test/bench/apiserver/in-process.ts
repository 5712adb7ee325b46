/** The embedded server in this process, without sockets: what a create and a stored object cost by themselves. */
import { createApiServer } from '@seamark/apiserver'
import { proxies, proxy, readDefinition } from './servers.ts'

export interface InProcess {
  create(prefix: string, count: number): Promise<void>
  /** Microseconds of one create, the median of batches. */
  cost(prefix: string, count: number): Promise<number>
  close(): Promise<void>
}

export async function startInProcess(): Promise<InProcess> {
  const server = createApiServer({ controllers: false })
  const post = async (path: string, body: Buffer): Promise<void> => {
    const headers = { 'content-type': 'application/json', 'user-agent': 'bench/1' }
    const response = await server.handle({ method: 'POST', path, query: new URLSearchParams(), headers, body })
    if (response.status !== 201) throw new Error(`a create was answered ${response.status}`)
  }
  await post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', Buffer.from(JSON.stringify(readDefinition())))
  const create = async (prefix: string, count: number): Promise<void> => {
    for (let index = 0; index < count; index += 1) await post(proxies, proxy(`${prefix}-${index}`))
  }
  return {
    create,
    async cost(prefix, count) {
      const batch = 100
      const times: number[] = []
      for (let done = 0; done < count; done += batch) {
        const started = performance.now()
        await create(`${prefix}-${done}`, batch)
        times.push(((performance.now() - started) * 1000) / batch)
      }
      return times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN
    },
    close: async () => await server.close(),
  }
}

export function usedBytes(): number {
  const collect = globalThis.gc
  if (collect === undefined) throw new Error('run with --expose-gc')
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
