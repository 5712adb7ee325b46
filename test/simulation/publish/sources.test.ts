/** The publish scenarios of every other source, as `seamark run` has them, under T1, T2, T3, T5 and T6. */
import { sourceScenarios } from '../../integration/publish/sources.ts'
import { describeDisturbed } from './scenario.ts'

describeDisturbed('publish, other sources, whatever goes wrong', sourceScenarios, { crashes: 9 })
