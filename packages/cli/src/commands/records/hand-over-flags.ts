/** What adopt, release and transfer share: which zones and names, show or apply, keep the plan for `seamark undo`. */
import { writeFile } from 'node:fs/promises'
import { type HandOver, type Plan, printPlanJson } from '@seamark/operator'
import type { Command } from 'commander'
import { EXIT, type Io } from '../../command.ts'
import { addOutputFlag } from '../../output-form.ts'
import {
  addRecordsFlags,
  applyMarkerPlans,
  eachTarget,
  PLAN_FORMS,
  type PlanForm,
  printPlans,
  readNames,
  type RecordsFlags,
  type Session,
  withSession,
} from './records-session.ts'

export interface HandOverFlags extends RecordsFlags {
  zone?: string
  apply?: boolean
  output: PlanForm
  out?: string
}

export function addHandOverFlags(command: Command): Command {
  command
    .option('--zone <name>', 'only this zone')
    .option('--apply', 'write the plan; without it the plan is only printed')
    .option('--out <file>', 'write the plan to a file, for seamark apply and seamark undo')
  addOutputFlag(command, PLAN_FORMS, 'text')
  return addRecordsFlags(command)
}

type Registry = NonNullable<Session['registry']>

export async function handOver(
  io: Io,
  flags: HandOverFlags & Record<string, unknown>,
  names: readonly string[],
  decide: (input: HandOver, registry: Registry) => Plan,
): Promise<void> {
  const only = readNames(names)
  await withSession(io, flags, async (session) => {
    const plans = await eachTarget(session, io.signal, flags.zone, async (target) => {
      const view = await session.engine.view(target, 'all', io.signal)
      const input: HandOver = {
        provider: target.label,
        zone: target.zone.name,
        view,
        owner: session.owner,
        number: await session.engine.number(target, view),
        types: session.config.types,
        ...(only !== undefined && { names: only }),
      }
      return decide(input, session.registry ?? {})
    })
    if (flags.out !== undefined) await writeFile(flags.out, printPlanJson(plans))
    io.stdout.write(printPlans(plans, flags.output))
    if (flags.apply === true) await applyMarkerPlans(io, session, plans)
    else if (plans.some((plan) => plan.changes.length > 0)) io.exit(EXIT.changes)
  })
}
