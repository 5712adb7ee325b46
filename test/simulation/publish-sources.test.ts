/** The publish scenarios of every other source, as `seamark run` has them, under T1, T2, T3, T5 and T6. */
import { sourceScenarios } from '../integration/publish/sources.ts'
import { describeDisturbed } from './publish-scenario.ts'

const isHandOver = ({ title }: { readonly title: string }): boolean => title.startsWith('T16:')
const handOvers = sourceScenarios.filter(isHandOver)
const others = sourceScenarios.filter((scenario) => !isHandOver(scenario))

describeDisturbed('publish, other sources, whatever goes wrong', others, { crashes: 9 })

/**
 * Without short lists: hosts are claimed by what the caches contain, so a list that omits the owner and is never corrected
 * lets a younger source have the host once the grace period is over (docs/publish.md, Limits).
 */
describeDisturbed('publish, hand-over of a host', handOvers, { crashes: 9, except: ['emptyList', 'shortList'] })
