/** The API server of a publish bench, fresh for each measurement, with the namespace and the load balancer in place. */
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configFromText, connect, CustomResourceDefinition, Namespace, Service } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import { crds } from '../../integration/publish/test-environment.ts'
import { ADDRESS, NAMESPACE, SERVICE } from './objects.ts'
import { start } from './programs.ts'

export interface BenchCluster {
  readonly kubeconfig: string
  /** A file with it. */
  readonly path: string
  stop(): Promise<void>
}

export const isReal = ControlPlane.missing() === undefined

export async function startCluster(type: 'real' | 'embedded'): Promise<BenchCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'publish-server-'))
  const path = join(folder, 'kubeconfig')
  const clean = async (): Promise<void> => rm(folder, { recursive: true, force: true })
  if (type === 'real') {
    const plane = await ControlPlane.start({ crds: crds() })
    await writeFile(path, plane.kubeconfig(), { mode: 0o600 })
    const stop = async (): Promise<void> => {
      await plane.stop()
      await clean()
    }
    return prepare({ kubeconfig: plane.kubeconfig(), path, stop }, [])
  }
  const child = await start('server', ['--max-old-space-size=6144'], [path])
  if (child.stdout === null) throw new Error('the embedded server has no output')
  await once(child.stdout, 'data')
  const stop = async (): Promise<void> => {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
    await clean()
  }
  return prepare({ kubeconfig: await readFile(path, 'utf8'), path, stop }, crds())
}

async function prepare(cluster: BenchCluster, definitions: object[]): Promise<BenchCluster> {
  const connection = connect(configFromText(cluster.kubeconfig))
  for (const definition of definitions)
    await connection.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
  await connection.client.create(Namespace, { metadata: { name: NAMESPACE } })
  const [namespace = '', name = ''] = SERVICE.split('/')
  await connection.client.create(Service, {
    metadata: { namespace, name },
    spec: { type: 'LoadBalancer', ports: [{ port: 443 }] },
  })
  await connection.close()
  await moveTo(cluster, ADDRESS)
  return cluster
}

/** Gives the load balancer this address. */
export async function moveTo(cluster: BenchCluster, ip: string): Promise<void> {
  const connection = connect(configFromText(cluster.kubeconfig))
  await connection.client.patch(
    Service,
    SERVICE,
    'merge',
    { status: { loadBalancer: { ingress: [{ ip }] } } },
    { subresource: 'status' },
  )
  await connection.close()
}
