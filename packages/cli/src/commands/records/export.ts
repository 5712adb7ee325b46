/** `seamark export`: the records we own, or a whole zone, as a zone file or as DNSEndpoints. Read-only. */
import { DnsError, fqdn, printZoneFile } from '@seamark/dns'
import { exportDnsEndpoint, exportedSets, type RRset } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addRecordsFlags, eachTarget, type RecordsFlags, withSession } from './records-session.ts'

interface Flags extends RecordsFlags {
  as: 'zonefile' | 'dnsendpoint'
  zone?: string
  all?: boolean
}

/** Fails for a value that a zone file cannot hold: an export that left it out would look complete. */
function zoneFileOf(zone: string, sets: readonly RRset[]): string {
  try {
    return printZoneFile(
      fqdn(zone),
      sets.map((set) => ({ ...set, name: fqdn(set.name) })),
    )
  } catch (error) {
    if (!(error instanceof DnsError)) throw error
    throw new CommandError(`zone ${zone} cannot be exported as a zone file: ${error.message}`, EXIT.error, {
      cause: error,
    })
  }
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
        if (flags.as === 'dnsendpoint') return exportDnsEndpoint(zone.name, sets, session.namespace)
        return zoneFileOf(zone.name, sets)
      })
      io.stdout.write(texts.join(flags.as === 'dnsendpoint' ? '---\n' : '\n'))
    })
  })
}
