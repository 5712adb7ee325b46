/** moto's Route 53 on loopback with one zone: a second opinion beside our strict fake, with the real SDK. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { CreateHostedZoneCommand, Route53Client } from '@aws-sdk/client-route-53'
import { findProgram } from '@seamark/kit'
import { freePort } from '../dns/peers.ts'

interface Moto {
  readonly endpoint: string
  readonly zoneId: string
  close(): Promise<void>
}

export async function startMoto(
  zone: string,
  credentials: { accessKeyId: string; secretAccessKey: string },
): Promise<Moto> {
  const { endpoint, close } = await launch()
  const client = new Route53Client({ endpoint, credentials, region: 'us-east-1' })
  try {
    const made = await client.send(new CreateHostedZoneCommand({ Name: zone, CallerReference: '1' }))
    return { endpoint, zoneId: made.HostedZone?.Id?.replace('/hostedzone/', '') ?? '', close }
  } catch (error) {
    await close()
    throw error
  } finally {
    client.destroy()
  }
}

/** A free port may be taken by somebody else before moto, which is slow to start, listens: it says so by ending. */
async function launch(): Promise<{ endpoint: string; close: () => Promise<void> }> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const port = await freePort()
    const child = spawn(findProgram('moto_server') ?? '', ['-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' })
    const endpoint = `http://127.0.0.1:${port}`
    const isRunning = () => child.exitCode === null && child.signalCode === null
    for (let wait = 0; wait < 300 && isRunning(); wait++) {
      // Its own address: another server on the port has none such.
      const isUp = await fetch(`${endpoint}/moto-api/data.json`).then(
        ({ ok }) => ok,
        () => false,
      )
      if (isUp && isRunning()) return { endpoint, close: async () => stop(child) }
      await sleep(100)
    }
    await stop(child)
  }
  throw new Error('moto_server does not start')
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
