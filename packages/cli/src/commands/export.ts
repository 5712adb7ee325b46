/** `seamark export`: the records we own, or a whole zone, as a zone file or as DNSEndpoints. Read-only. */
import { fqdn, printZoneFile } from '@seamark/dns'
import { exportDnsEndpoint, exportedSets } from '@seamark/operator'
import { Command } from 'commander'
import type { Io } from '../command.ts'
import { addRecordsFlags, eachTarget, type RecordsFlags, withSession } from '../records-session.ts'

interface Flags extends RecordsFlags {
  as: 'zonefile' | 'dnsendpoint'
  zone?: string
  all?: boolean
}

export function build(io: Io): Command {
  const command = new Command()
    .description('our records as a zone file or as DNSEndpoints')
    .option('--zone <name>', 'only this zone')
    .option('--all', 'also records that are not ours')
  command.addOption(
    command.createOption('--as <form>', 'form of the output').choices(['zonefile', 'dnsendpoint']).default('zonefile'),
  )
  addRecordsFlags(command)
  return command.action(async (flags: Flags & Record<string, unknown>) => {
    await withSession(io, flags, async (session) => {
      const texts = await eachTarget(session, io.signal, flags.zone, async ({ zone, ...target }) => {
        const view = await session.engine.view({ zone, ...target }, 'all', io.signal)
        const sets = exportedSets(view, session.owner, session.config.types, flags.all === true)
        if (flags.as === 'dnsendpoint') return exportDnsEndpoint(zone.name, sets, flags.namespace ?? 'seamark')
        return printZoneFile(
          fqdn(zone.name),
          sets.map((set) => ({ ...set, name: fqdn(set.name) })),
        )
      })
      io.stdout.write(texts.join(flags.as === 'dnsendpoint' ? '---\n' : '\n'))
    })
  })
}
