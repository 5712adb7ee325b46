import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { configFromText } from '../config/config.ts'
import { createLogger } from '../log.ts'
import { ConfigMap } from '../object/kinds.ts'
import { connect } from './cluster.ts'

const kubeconfig = (port: number) => `apiVersion: v1
kind: Config
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: "http://127.0.0.1:${port}" } }]
users: [{ name: u, user: {} }]
`

it('names the cluster in its log lines', async () => {
  const server = createServer((_request, response) => response.writeHead(403).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const lines: { msg: string; cluster?: string; kind?: string }[] = []
  const log = createLogger({ destination: { write: (line: string) => lines.push(JSON.parse(line) as never) } })
  const config = configFromText(kubeconfig((server.address() as AddressInfo).port))
  const cluster = connect(config, { name: 'eu1', log })
  const stop = new AbortController()
  cluster.informers.informer(ConfigMap)
  const running = cluster.informers.start(stop.signal)
  try {
    await expect.poll(() => lines[0]).toMatchObject({ msg: 'watch restarts', cluster: 'eu1', kind: 'ConfigMap' })
  } finally {
    stop.abort()
    await running
    await cluster.close()
    await new Promise((resolve) => server.close(resolve))
  }
})
