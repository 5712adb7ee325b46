/** A zone of our own DNS server, and the configuration with which commands manage it: the guard state is in a folder. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDnsServer, createRRset, createZone, type DnsServer, fqdn, type RRset, TsigKey } from '@seamark/dns'

const secret = Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64')

export interface CommandZone {
  readonly dns: DnsServer
  readonly folder: string
  readonly config: string
  readonly stateFolder: string
  /** Environment of the commands. */
  readonly env: { readonly TSIG_SECRET: string }
  stop(): Promise<void>
}

/** `name` has no final dot; `sets` are those besides SOA and NS. */
export async function startCommandZone(name: string, sets: readonly RRset[] = []): Promise<CommandZone> {
  const origin = fqdn(`${name}.`)
  const key = new TsigKey('seamark', 'hmac-sha256', secret)
  const zone = createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} admin.${origin} 1 3600 600 86400 30`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    ...sets,
  ])
  const dns = await createDnsServer({
    zones: [zone],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [key],
    defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name] },
  })
  const folder = await mkdtemp(join(tmpdir(), 'seamark-command-zone-'))
  const config = join(folder, 'seamark.yaml')
  const stateFolder = join(folder, 'state')
  await writeFile(
    config,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
records:
  owner: mine
  cluster: c-1
  stateFolder: ${stateFolder}
  providers:
    - name: own
      type: rfc2136
      server: 127.0.0.1:${dns.addresses[0]?.port}
      zones: [${name}]
      key: { name: seamark, secretFrom: { env: TSIG_SECRET } }
`,
  )
  const stop = async (): Promise<void> => {
    await dns.close()
    await rm(folder, { recursive: true, force: true })
  }
  return { dns, folder, config, stateFolder, env: { TSIG_SECRET: secret }, stop }
}
