/** All contract cases, each with the behaviour and the row of the specification that it covers. */
import type { Case } from './case.ts'
import { builtin } from './cases/builtin.ts'
import { custom } from './cases/custom.ts'
import { remove } from './cases/delete.ts'
import { discovery } from './cases/discovery.ts'
import { escalation } from './cases/escalation.ts'
import { patch } from './cases/patch.ts'
import { read } from './cases/read.ts'
import { reread } from './cases/reread.ts'
import { rights } from './cases/rights.ts'
import { rules } from './cases/rules.ts'
import { watch } from './cases/watch.ts'
import { write } from './cases/write.ts'

export const cases: readonly Case[] = [
  ...discovery,
  ...read,
  ...watch,
  ...write,
  ...patch,
  ...remove,
  ...custom,
  ...builtin,
  ...rights,
  ...escalation,
  ...rules,
  ...reread,
]
