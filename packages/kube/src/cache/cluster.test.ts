import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { configFromText } from '../config/config.ts'
import { createLogger } from '../log.ts'
import { ConfigMap, Lease, Secret } from '../object/kinds.ts'
import type { Kind } from '../object/object.ts'
import { connect } from './cluster.ts'

const kubeconfig = (port: number) => `apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: "http://127.0.0.1:${port}" } }]
users: [{ name: u, user: {} }]
`

interface Line {
  msg: string
  level: string
  cluster?: string
  kind?: string
  kinds?: string[]
}

/** Caches of a server that answers every request with `status`. */
async function watching(status: number, kinds: readonly Kind[], check: (lines: readonly Line[]) => Promise<void>) {
  const server = createServer((_request, response) => response.writeHead(status).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const lines: Line[] = []
  const log = createLogger({ destination: { write: (line: string) => lines.push(JSON.parse(line) as never) } })
  const config = configFromText(kubeconfig((server.address() as AddressInfo).port))
  const cluster = connect(config, { name: 'eu1', log })
  const stop = new AbortController()
  for (const kind of kinds) cluster.informers.informer(kind)
  const running = cluster.informers.start(stop.signal)
  try {
    await check(lines)
  } finally {
    stop.abort()
    await running
    await cluster.close()
    await new Promise((resolve) => server.close(resolve))
  }
}

it('names the cluster in its log lines', async () =>
  watching(403, [ConfigMap], async (lines) => {
    await expect.poll(() => lines[0]).toMatchObject({ msg: 'watch restarts', cluster: 'eu1', kind: 'ConfigMap' })
  }))

it('lists the kinds that are not installed in one line, which is no warning', async () =>
  watching(404, [Secret, Lease, ConfigMap], async (lines) => {
    await expect
      .poll(() => lines, { timeout: 5_000 })
      .toMatchObject([
        {
          level: 'info',
          cluster: 'eu1',
          kinds: [
            'configmaps',
            'customresourcedefinitions.apiextensions.k8s.io',
            'leases.coordination.k8s.io',
            'secrets',
          ],
          msg: 'kinds are not installed; each is watched once its CRD is',
        },
      ])
  }))
