/** The same with Envoys of their own: they get what they serve from a manager that is replaced, and are replaced themselves. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HTTPProxy } from '@seamark/operator'
import type { AuditedPlane } from '../audited-plane.ts'
import { eventually, LIMIT_MS, put } from '../lives/life.ts'
import type { Backend } from './backend.ts'
import { areRotated, readCertificates } from './certificates.ts'
import { type EnvoyPod, startEnvoyPod } from './envoy-pod.ts'
import { addRequests, type Load } from './load.ts'
import { ask } from './pod.ts'
import { Rollout } from './rollout.ts'

const QUESTIONS = 8

interface EnvoysWorld {
  readonly plane: AuditedPlane
  readonly namespace: string
  readonly managers: Rollout
  readonly backend: Backend
  readonly address: string
  readonly port: number
  readonly load: Load
  readonly host: string
  /** Upgrades the release, and replaces the managers. */
  readonly change: () => Promise<void>
}

export async function withEnvoys(world: EnvoysWorld): Promise<void> {
  const { plane, namespace, managers, load, host } = world
  const folder = mkdtempSync(join(tmpdir(), 'seamark-rollout-'))
  const [xds, path] = [join(folder, 'xds.sock'), join(folder, 'backend.sock')]
  await world.backend.listen({ path })
  const service = createServer((socket) => {
    const other = connect(managers.pick('xds'))
    for (const [one, two] of [
      [socket, other],
      [other, socket],
    ] as const)
      one.on('error', () => two.destroy()).on('close', () => two.destroy())
    socket.pipe(other).pipe(socket)
  }).listen(xds)
  await once(service, 'listening')
  const pods: EnvoyPod[] = []
  const old = await readCertificates(plane.client, namespace)
  const reaches = [{ host: world.address, port: world.port, path }]
  const envoys = new Rollout(async () => {
    const pod = await startEnvoyPod({ client: plane.client, namespace, xds, reaches })
    pods.push(pod)
    return pod
  })
  try {
    await envoys.scale(2)
    const to = (): Parameters<typeof ask>[0] => envoys.pick('http')
    addRequests(load, to, host)
    await load.goOn(QUESTIONS)
    await areRotated(plane.client, namespace, old)
    for (const pod of pods) await pod.refresh()
    // Each Envoy connects again, with its new certificate to the new one of a manager.
    await world.change()
    // The managers that are new are those that Envoys follow now.
    await put(plane, HTTPProxy, {
      metadata: { namespace: 'shop', name: 'late' },
      spec: { virtualhost: { fqdn: `late.${host}` }, routes: [{ directResponsePolicy: { statusCode: 204 } }] },
    })
    await eventually(
      'the late host',
      async () => Promise.all([0, 1].map(async () => ask(to(), '/', `late.${host}`))),
      (all) => all.every((answer) => answer?.status === 204),
      LIMIT_MS,
    )
    await envoys.roll()
    await load.goOn(QUESTIONS)
  } catch (error) {
    throw new Error(`${String(error)}\n${pods.map(({ log }) => log.slice(-3_000)).join('\n')}`, { cause: error })
  } finally {
    await load.end()
    await envoys.end()
    service.close()
    rmSync(folder, { recursive: true })
  }
}
