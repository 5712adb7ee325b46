/** `seamark undo PLAN`: takes an applied plan back, set by set, where nobody changed it since. */
import { inverseOf } from '@seamark/operator'
import { Command } from 'commander'
import type { Io } from '../command.ts'
import { addRecordsFlags, applyPlans, printPlans, type RecordsFlags, withSession } from '../records-session.ts'
import { readPlans } from './apply.ts'

interface Flags extends RecordsFlags {
  dryRun?: boolean
}

export function build(io: Io): Command {
  const command = new Command()
    .description('take an applied plan back')
    .argument('<plan>', 'the plan file that was applied')
    .option('--dry-run', 'print what would be written, and write nothing')
  addRecordsFlags(command)
  return command.action(async (file: string, flags: Flags & Record<string, unknown>) => {
    const plans = await readPlans(file)
    // Newer than the plan it takes back, whatever the clock says.
    const inverses = plans.map((plan) => inverseOf(plan, Math.max(Date.now(), plan.number + 1)))
    if (flags.dryRun === true) {
      io.stdout.write(printPlans(inverses, 'text'))
      return
    }
    await withSession(io, flags, async ({ engine }) => applyPlans(io, engine, inverses))
  })
}
