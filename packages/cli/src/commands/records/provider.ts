/** `seamark provider list|test|conformance|webhook`: what is configured, whether it works and keeps its promises. */
import { CONFORMANCE, ConformanceError, ProviderError } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'
import { addOutputFlag, printTable, printValue } from '../../output-form.ts'
import { serveWebhook, type WebhookFlags } from './webhook-serving.ts'
import { addRecordsFlags, eachTarget, type RecordsFlags, type Session, withSession } from './records-session.ts'

interface Flags extends RecordsFlags {
  zone?: string
  output?: 'text' | 'wide' | 'json' | 'yaml'
}

export function build(io: Io): Command {
  const command = new Command().description('look at DNS providers')
  addRecordsFlags(
    addOutputFlag(
      command.command('list').description('configured providers and their zones'),
      ['text', 'wide', 'json', 'yaml'],
      'text',
    ),
  ).action(async (flags: Flags & Record<string, unknown>) =>
    withSession(io, flags, async (session) => list(io, session, flags.output ?? 'text')),
  )
  addRecordsFlags(
    command.command('test').description('read every zone').option('--zone <name>', 'only this zone'),
  ).action(async (flags: Flags & Record<string, unknown>) =>
    withSession(io, flags, async (session) => test(io, session, flags.zone)),
  )
  addRecordsFlags(
    command
      .command('conformance')
      .description('run the conformance kit: writes and removes names that begin with conformance-')
      .requiredOption('--zone <name>', 'a zone to write to'),
  ).action(async (flags: Flags & Record<string, unknown>) =>
    withSession(io, flags, async (session) => conform(io, session, flags.zone)),
  )
  addRecordsFlags(
    command
      .command('webhook')
      .description("serve a provider by ExternalDNS' webhook protocol, for ExternalDNS to use")
      .option('--provider <name>', 'which of the configured providers; else the only one')
      .option('--listen <host:port>', 'where to listen; the protocol has no authentication', '127.0.0.1:8888')
      .option('--host <name...>', 'host names that requests may be for, beside localhost and IP addresses'),
  ).action(async (flags: WebhookFlags & Record<string, unknown>) => serveWebhook(io, flags))
  return command
}

async function list(io: Io, { engine }: Session, form: NonNullable<Flags['output']>): Promise<void> {
  const { targets, unread } = await engine.targets(io.signal)
  const rows = targets.map(({ label, provider, zone }) => ({
    provider: label,
    zone: zone.name,
    visibility: zone.visibility ?? 'public',
    isAtomic: provider.capabilities.isAtomic,
    comparesAndSwaps: provider.capabilities.comparesAndSwaps,
    requestsPerSecond: provider.capabilities.requestsPerSecond,
  }))
  if (form === 'json' || form === 'yaml') io.stdout.write(printValue(form, { zones: rows, unread }))
  else {
    const cells = rows.map(({ provider, zone, visibility, isAtomic, comparesAndSwaps, requestsPerSecond }) => {
      const short = [provider, zone, visibility]
      return form === 'text'
        ? short
        : [...short, isAtomic ? 'yes' : 'no', comparesAndSwaps ? 'yes' : 'no', String(requestsPerSecond)]
    })
    const short = ['PROVIDER', 'ZONE', 'VISIBILITY']
    const heading = form === 'text' ? short : [...short, 'ATOMIC', 'COMPARE-AND-SWAP', 'REQUESTS/S']
    io.stdout.write(printTable(heading, cells))
  }
  for (const { provider, code, why } of unread) io.stderr.write(`${provider}: ${code}: ${why}\n`)
  if (unread.length > 0) io.exit(EXIT.error)
}

async function test(io: Io, session: Session, zone: string | undefined): Promise<void> {
  let failures = 0
  await eachTarget(session, io.signal, zone, async (target) => {
    try {
      const view = await session.engine.view(target, 'all', io.signal)
      const marked = view.nameViews.filter(({ firstMarked }) => firstMarked !== undefined).length
      io.stdout.write(
        `ok\t${target.label}\t${target.zone.name}\t${view.sets.length} record sets, ${marked} marked names\n`,
      )
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      failures++
      io.stdout.write(`fail\t${target.label}\t${target.zone.name}\t${error.code}: ${error.message}\n`)
    }
  })
  if (failures > 0) io.exit(EXIT.error)
}

async function conform(io: Io, session: Session, zone: string | undefined): Promise<void> {
  let failures = 0
  await eachTarget(session, io.signal, zone, async (target) => {
    for (const item of CONFORMANCE) {
      try {
        await item.run({ provider: target.provider, zone: target.zone, signal: io.signal })
        io.stdout.write(`ok   ${target.label}: ${item.title}\n`)
      } catch (error) {
        failures++
        const why = error instanceof ConformanceError || error instanceof ProviderError ? error.message : String(error)
        io.stdout.write(`FAIL ${target.label}: ${item.title}: ${why}\n`)
      }
    }
  })
  if (failures > 0) throw new CommandError(`${failures} cases failed`)
}
