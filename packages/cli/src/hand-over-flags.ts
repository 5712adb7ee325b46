/** What adopt, release and transfer share: which zones and names, show or apply, keep the plan for `seamark undo`. */
import { writeFile } from 'node:fs/promises'
import { type HandOver, type Plan, printPlanJson } from '@seamark/operator'
import type { Command } from 'commander'
import { EXIT, type Io } from './command.ts'
import {
  addRecordsFlags,
  applyMarkerPlans,
  eachTarget,
  printPlans,
  readForm,
  readNames,
  type RecordsFlags,
  type Session,
  withSession,
} from './records-session.ts'

export interface HandOverFlags extends RecordsFlags {
  zone?: string
  apply?: boolean
  output?: string
  out?: string
}

export function addHandOverFlags(command: Command): Command {
  return addRecordsFlags(
    command
      .option('--zone <name>', 'only this zone')
      .option('--apply', 'write it; else it is only shown')
      .option('-o, --output <text|json|md>', 'form of the plan', 'text')
      .option('--out <file>', 'write the plan to a file, for seamark apply and seamark undo'),
  )
}

type Registry = NonNullable<Session['registry']>

export async function handOver(
  io: Io,
  flags: HandOverFlags & Record<string, unknown>,
  names: readonly string[],
  decide: (world: HandOver, registry: Registry) => Plan,
): Promise<void> {
  const form = readForm(flags.output)
  const only = readNames(names)
  await withSession(io, flags, async (session) => {
    const plans = await eachTarget(session, io.signal, flags.zone, async (target) => {
      const view = await session.engine.view(target, 'all', io.signal)
      const world: HandOver = {
        provider: target.label,
        zone: target.zone.name,
        view,
        owner: session.owner,
        number: await session.engine.number(target, view),
        types: session.config.types,
        ...(only === undefined ? {} : { names: only }),
      }
      return decide(world, session.registry ?? {})
    })
    if (flags.out !== undefined) await writeFile(flags.out, printPlanJson(plans))
    io.stdout.write(printPlans(plans, form))
    if (flags.apply === true) await applyMarkerPlans(io, session, plans)
    else if (plans.some((plan) => plan.changes.length > 0)) io.exit(EXIT.changes)
  })
}
