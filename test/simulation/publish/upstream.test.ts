/** The publish scenarios of contour-plus' own suite (U) under T1, T2, T3, T5 and T6: see scenario.ts. */
import { scenarios } from '../../integration/publish/scenarios.ts'
import { describeDisturbed } from './scenario.ts'

describeDisturbed(
  'publish, upstream scenarios, whatever goes wrong',
  scenarios.filter(({ title }) => title.startsWith('U')),
)
