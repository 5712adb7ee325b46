/** The publish scenarios characterised from contour-plus' behaviour (D) under T1, T2, T3, T5 and T6. */
import { scenarios } from '../../integration/publish/scenarios.ts'
import { describeDisturbed } from './scenario.ts'

describeDisturbed(
  'publish, characterised scenarios, whatever goes wrong',
  scenarios.filter(({ title }) => !title.startsWith('U')),
)
