/**
 * Server-side applies on a real kube-apiserver: our client against a loop on node:http2 that does nothing else. Both
 * create ConfigMaps of the same shape, 32 in flight, in short turns of ABBA, so that a server that slows down as it
 * fills, or a machine that is busy for a while, does so for both.
 */
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { ConfigMap, configFromText, connect } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'

const WRITES = 300
const ROUNDS = 4
const IN_FLIGHT = 32

const object = (name: string) => ({
  metadata: { name, namespace: 'default', labels: { app: 'bench' } },
  data: { host: `${name}.example.test`, target: '192.0.2.10' },
})

async function inParallel(run: (index: number) => Promise<unknown>): Promise<number> {
  let next = 0
  const worker = async () => {
    while (next < WRITES) await run(next++)
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  return performance.now() - startedAt
}

/** Time of the bare loop ÷ time of our client. */
export async function measureRealWrites(): Promise<number> {
  const plane = await ControlPlane.start({})
  const { certPem: cert, keyPem: key } = plane.admin
  const bare = connectHttp2(plane.server, { ca: plane.caPem, cert, key })
  await once(bare, 'connect')
  const cluster = connect(configFromText(plane.kubeconfig()), { fieldManager: 'bench' })

  const writeBare = async (name: string) =>
    new Promise<void>((resolve, reject) => {
      const stream = bare.request({
        ':method': 'PATCH',
        ':path': `/api/v1/namespaces/default/configmaps/${name}?fieldManager=bench&force=true`,
        'content-type': 'application/apply-patch+yaml',
        accept: 'application/json',
      })
      const chunks: Buffer[] = []
      stream.on('response', (headers) => {
        if ((headers[':status'] ?? 500) >= 300) reject(new Error(`status ${headers[':status']}`))
      })
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('error', reject)
      stream.on('end', () => {
        JSON.parse(Buffer.concat(chunks).toString('utf8'))
        resolve()
      })
      stream.end(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', ...object(name) }))
    })
  const ours = async (round: string) => {
    return inParallel(async (index) => cluster.client.apply(ConfigMap, object(`${round}-${index}`)))
  }
  const theirs = async (round: string) => inParallel(async (index) => writeBare(`${round}-${index}`))
  try {
    // Warm-up of both connections and of the server.
    await theirs('w')
    await ours('x')
    let ourMs = 0
    let theirMs = 0
    for (let round = 0; round < ROUNDS; round++) {
      theirMs += await theirs(`a${round}`)
      ourMs += await ours(`b${round}`)
      ourMs += await ours(`c${round}`)
      theirMs += await theirs(`d${round}`)
    }
    return theirMs / ourMs
  } finally {
    bare.close()
    await cluster.close()
    await plane.stop()
  }
}
