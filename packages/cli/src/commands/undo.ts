/**
 * `seamark undo PLAN`: takes an applied plan back, set by set, where nobody changed it since. PLAN is a file, or the number
 * of a plan that the manager or a command applied; without it the plans that are kept are listed.
 */
import { existsSync } from 'node:fs'
import { inverseOf, type Plan } from '@seamark/operator'
import { Command } from 'commander'
import { CommandError, EXIT, type Io } from '../command.ts'
import {
  addRecordsFlags,
  applyMarkerPlans,
  printPlans,
  type RecordsFlags,
  type Session,
  withSession,
} from '../records-session.ts'
import { readPlans } from './apply.ts'

interface Flags extends RecordsFlags {
  dryRun?: boolean
}

export function build(io: Io): Command {
  const command = new Command()
    .description('take an applied plan back')
    .argument('[plan]', 'a plan file, or the number of an applied plan; without it they are listed')
    .option('--dry-run', 'print what would be written, and write nothing')
  addRecordsFlags(command)
  return command.action(async (given: string | undefined, flags: Flags & Record<string, unknown>) =>
    withSession(io, flags, async (session) => {
      if (given === undefined) {
        await list(io, session)
        return
      }
      const plans = await findPlans(given, session)
      // Newer than the plan it takes back, whatever the clock says.
      const inverses = plans.map((plan) => inverseOf(plan, Math.max(Date.now(), plan.number + 1)))
      if (flags.dryRun === true) io.stdout.write(printPlans(inverses, 'text'))
      else await applyMarkerPlans(io, session, inverses)
    }),
  )
}

async function list(io: Io, { plans }: Session): Promise<void> {
  for (const { number, provider, zone, changes } of await plans.list())
    io.stdout.write(`${number}\t${new Date(number).toISOString()}\t${zone}\t${provider}\t${changes} changes\n`)
}

async function findPlans(given: string, { plans, owner }: Session): Promise<readonly Plan[]> {
  const found = /^\d+$/.test(given) && !existsSync(given) ? await plans.load(Number(given)) : await readPlans(given)
  if (found.length === 0)
    throw new CommandError(`no plan ${given} is kept; \`seamark undo\` lists those that are`, EXIT.error)
  const other = found.find((plan) => plan.owner !== owner.id)
  if (other !== undefined)
    throw new CommandError(`the plan is of owner '${other.owner}', not of '${owner.id}'`, EXIT.refused)
  return found
}
