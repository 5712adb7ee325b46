/**
 * The publish scenarios about mistakes that touch many objects, under T1, T2, T3, T5 and T6. What the guard holds depends on
 * what comes within its window, so scenarios in which users change many sources run on servers only.
 */
import { guardScenarios } from '../../integration/publish/guards.ts'
import { describeDisturbed } from './scenario.ts'

// A short list makes a published source look new, and a new one is published at once: not every source is held then.
const isSteady = ({ title }: { title: string }) => !/^(another class|a few deletions)/.test(title)

describeDisturbed('publish, guards, whatever goes wrong', guardScenarios.filter(isSteady), {
  crashes: 4,
  except: ['shortList'],
})
