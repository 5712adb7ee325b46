/** The publish scenarios about mistakes that touch many objects, under T1, T2, T3, T5 and T6. */
import { guardScenarios } from '../integration/publish-guards.ts'
import { describeDisturbed } from './publish-scenario.ts'

describeDisturbed('publish, guards, whatever goes wrong', guardScenarios, 4)
