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
  /** An empty zone in place of the one before. */
  renewZone(): Promise<void>
  removeZone(): Promise<void>
  close(): Promise<void>
}

export async function startMoto(
  zone: string,
  credentials: { accessKeyId: string; secretAccessKey: string },
): Promise<Moto> {
  const { endpoint, close } = await launch()
  const client = new Route53Client({ endpoint, credentials, region: 'us-east-1' })
  let made = 0
  const makeZone = async (): Promise<string> => {
    const { HostedZone } = await client.send(new CreateHostedZoneCommand({ Name: zone, CallerReference: `${made++}` }))
    return HostedZone?.Id?.replace('/hostedzone/', '') ?? ''
  }
  const forget = async (): Promise<void> => {
    await fetch(`${endpoint}/moto-api/reset`, { method: 'POST' })
  }
  const end = async (): Promise<void> => {
    client.destroy()
    await close()
  }
  try {
    let zoneId = await makeZone()
    return {
      endpoint,
      get zoneId() {
        return zoneId
      },
      removeZone: forget,
      async renewZone() {
        await forget()
        zoneId = await makeZone()
      },
      close: end,
    }
  } catch (error) {
    await end()
    throw error
  }
}

/** A free port may be taken by another process before moto, which is slow to start, listens: it then exits. */
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
