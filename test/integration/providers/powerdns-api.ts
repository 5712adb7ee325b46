/** PowerDNS with its HTTP API on loopback, in a temporary folder and on free ports. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findProgram } from '@seamark/kit'
import { freePort } from '../dns/peers.ts'

export interface PowerdnsApi {
  readonly url: string
  readonly apiKey: string
  readonly port: number
  /** SQLite file, for filling a zone past the API. */
  readonly database: string
  close(): Promise<void>
}

const SCHEMA = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql'

export async function startPowerdnsApi(zones: readonly string[]): Promise<PowerdnsApi> {
  const folder = mkdtempSync(join(tmpdir(), 'seamark-pdns-api-'))
  const [port, apiPort] = [await freePort(), await freePort()]
  const database = join(folder, 'pdns.sqlite3')
  execFileSync(findProgram('sqlite3') ?? 'sqlite3', [database], { input: readFileSync(SCHEMA, 'utf8') })
  const apiKey = 'canary-powerdns-key'
  const settings = {
    launch: 'gsqlite3',
    'gsqlite3-database': database,
    'gsqlite3-pragma-synchronous': '0',
    'local-address': '127.0.0.1',
    'local-port': port,
    'socket-dir': folder,
    daemon: 'no',
    guardian: 'no',
    'disable-syslog': 'yes',
    'write-pid': 'no',
    api: 'yes',
    'api-key': apiKey,
    webserver: 'yes',
    'webserver-address': '127.0.0.1',
    'webserver-port': apiPort,
    'webserver-allow-from': '127.0.0.1',
    'cache-ttl': 0,
    'query-cache-ttl': 0,
    'negquery-cache-ttl': 0,
    'zone-cache-refresh-interval': 0,
  }
  const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}`)
  writeFileSync(join(folder, 'pdns.conf'), lines.join('\n'))
  const child = spawn(findProgram('pdns_server') ?? 'pdns_server', [`--config-dir=${folder}`], { stdio: 'ignore' })
  const close = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    }
    rmSync(folder, { recursive: true, force: true })
  }
  const url = `http://127.0.0.1:${apiPort}`
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' }
  try {
    for (const zone of zones) {
      const body = JSON.stringify({ name: zone, kind: 'Native', nameservers: [`ns1.${zone}`] })
      for (let attempt = 0; ; attempt++) {
        const status = await fetch(`${url}/api/v1/servers/localhost/zones`, { method: 'POST', headers, body }).then(
          (response) => response.status,
          () => 0,
        )
        if (status === 201) break
        if (attempt > 200) throw new Error(`PowerDNS does not take zone ${zone}: HTTP ${status}`)
        await sleep(50)
      }
    }
  } catch (error) {
    await close()
    throw error
  }
  return { url, apiKey, port, database, close }
}
