/**
 * A part of the playground: a DNSLoadBalancer with two backends on this machine. One of them is stopped; the answer follows
 * its health, and `explain` shows the evidence. Probes, decision and records are those of the product.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { poll, systemClock } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint } from '@seamark/operator'
import type { Io } from '../../command.ts'
import { build as buildExplain } from '../explain/explain.ts'
import { NoAnswer, type Printer } from './demonstration.ts'
import { type Environment, ZONE } from './environment.ts'

/** Linux has the whole of 127.0.0.0/8; other systems only 127.0.0.1. */
const ADDRESSES = ['127.0.0.2', '127.0.0.3'] as const
const NAMESPACE = 'shop'
const NAME = 'app'
const HOST = `${NAME}.${ZONE}`
const LIMIT_MS = 30_000
const POLL_MS = 25

export async function showFailover(environment: Environment, printer: Printer, io: Io): Promise<void> {
  printer.heading('Part 3: a backend fails, and the answer follows')
  const backends = await startBackends()
  if (backends === undefined) {
    printer.line(`skipped: this machine has no loopback address ${ADDRESSES[0]}`)
    return
  }
  try {
    await createBalancer(environment, backends.port)
    const before = await untilAnswer(environment, ADDRESSES)
    printer.line(
      `DNSLoadBalancer ${NAMESPACE}/${NAME} with two healthy endpoints: ${HOST} answers ${before.join(', ')}`,
    )
    const stoppedMs = Date.now()
    backends.stopFirst()
    const after = await untilAnswer(environment, ADDRESSES.slice(1))
    printer.line(
      `the backend ${ADDRESSES[0]} was stopped: ${HOST} answers ${after.join(', ')}, three failed probes and one change of the record in ${Date.now() - stoppedMs} ms`,
    )
    for (const line of (await evidence(environment, io)).trimEnd().split('\n')) printer.line(line)
  } finally {
    backends.close()
  }
}

interface Backends {
  readonly port: number
  stopFirst(): void
  close(): void
}

/** Undefined when the machine has not the addresses. */
async function startBackends(): Promise<Backends | undefined> {
  const servers: Server[] = []
  const stop = (server: Server | undefined): void => {
    server?.close()
    server?.closeAllConnections()
  }
  let port = 0
  try {
    for (const address of ADDRESSES) {
      const server = createServer((_request, response) => response.end('ok\n'))
      servers.push(server)
      server.listen(port, address)
      await once(server, 'listening')
      port = (server.address() as AddressInfo).port
    }
  } catch (error) {
    for (const server of servers) stop(server)
    if ((error as NodeJS.ErrnoException).code === 'EADDRNOTAVAIL') return undefined
    throw error
  }
  return {
    port,
    stopFirst: () => stop(servers[0]),
    close() {
      for (const server of servers) stop(server)
    },
  }
}

async function createBalancer({ client }: Environment, port: number): Promise<void> {
  await client.create(DNSLoadBalancer, {
    metadata: { namespace: NAMESPACE, name: NAME },
    spec: { DNSName: HOST, healthPath: '/', healthCheck: { scheme: 'http', port, profile: 'fast' } },
  })
  for (const [index, ipaddress] of ADDRESSES.entries())
    await client.create(DNSLoadBalancerEndpoint, {
      metadata: { namespace: NAMESPACE, name: `${NAME}-${index + 1}` },
      spec: { loadbalancer: NAME, ipaddress },
    })
}

async function untilAnswer(environment: Environment, wanted: readonly string[]): Promise<readonly string[]> {
  const ask = async () => {
    const answer = (await environment.ask(HOST)).toSorted()
    return answer.join() === wanted.join() ? answer : undefined
  }
  const found = await poll(ask, { clock: systemClock, intervalMs: POLL_MS, timeoutMs: LIMIT_MS })
  if (found !== undefined) return found
  throw new NoAnswer(`${HOST} did not answer ${wanted.join(', ')} within ${LIMIT_MS / 1_000} s`)
}

/** What `seamark explain` prints, once the manager has reported. */
async function evidence({ client, kubeconfigPath, configPath, dnsAddress }: Environment, io: Io): Promise<string> {
  const isReported = async () => {
    const endpoint = await client.find(DNSLoadBalancerEndpoint, `${NAMESPACE}/${NAME}-1`)
    return endpoint?.status?.active === false ? true : undefined
  }
  await poll(isReported, { clock: systemClock, intervalMs: POLL_MS, timeoutMs: LIMIT_MS })
  let text = ''
  const stdout = new Writable({
    write(part: Buffer, _encoding, done) {
      text += part.toString()
      done()
    },
  })
  // Its exit code is not that of the playground.
  const captured: Io = { ...io, stdout, exit: () => undefined }
  const files = ['--kubeconfig', kubeconfigPath, '--config', configPath]
  const server = ['--server', `${dnsAddress.address}:${dnsAddress.port}`]
  await buildExplain(captured).parseAsync([HOST, ...files, ...server], { from: 'user' })
  return text
}
