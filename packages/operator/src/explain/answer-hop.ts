/** The hop `answer`: what the DNS servers of a host answer, beside what is requested. Pure. */
import type { AnswerState } from '../verdict.ts'
import type { AnswerFact, ExplainFacts, Hop, HopName } from './facts.ts'
import { broken, degraded, idleText, isSameSet, ok, PUBLISH_OFF, skipped } from './hop.ts'

/**
 * By the servers that were asked, else as the manager last asked, while it runs. The records of a zone show what clients do not get;
 * that they get what is in it, only an answer shows.
 */
export function answerState(facts: ExplainFacts, hops: readonly Hop[]): AnswerState {
  const { answers = [], plan } = facts
  const stateOf = (name: HopName, values: readonly string[]): AnswerState => {
    const state = hops.find((hop) => hop.name === name)?.state
    if (state === 'skipped') return undefined
    if (values.length === 0) return 'nothing'
    return state === 'broken' ? 'wrong' : 'right'
  }
  if (answers.length > 0) return stateOf('answer', decidingAnswer(facts)?.targets ?? [])
  const zone = plan === undefined || plan.providerFault !== undefined ? undefined : stateOf('provider', plan.records)
  // The zone was read now, and its servers were asked some time ago.
  return zone === 'wrong' || zone === 'nothing' ? zone : validStoredAnswer(facts)?.state
}

/** That all is right counts only as long as somebody would have noticed a change. */
function validStoredAnswer({ storedAnswer, manager, unasked }: ExplainFacts): ExplainFacts['storedAnswer'] {
  const isWatched = unasked !== undefined || manager?.lease?.state === 'held'
  return storedAnswer?.state === 'right' && !isWatched ? undefined : storedAnswer
}

export function answerHop(facts: ExplainFacts): Hop {
  const { answers = [], published, isPublishOn = true } = facts
  const desired = desiredAnswer(facts)
  const answer = decidingAnswer(facts)
  if (answer === undefined) return desired.length === 0 ? silentHop(answers) : missingAnswerHop(facts)
  const answered = answer.targets.join(', ')
  // Without a DNSEndpoint the record may be anybody's.
  if (!isPublishOn && published === undefined && desired.length === 0)
    return skipped('answer', `${answer.server} answers ${answered || 'nothing'}; ${PUBLISH_OFF}`)
  if (!isDesired(facts, answer)) {
    const text = `${answer.server} answers ${answered || 'nothing'} instead of ${desired.join(', ') || 'nothing'}`
    return broken('answer', 'AnswerDiffers', text)
  }
  const text = `${answer.server} answers ${answered || 'nothing, as desired'}`
  const silent = answers.filter(({ fault }) => fault !== undefined)
  if (silent.length === 0) return ok('answer', text)
  return degraded(broken('answer', 'NoAnswer', `${faultText(silent)}; ${text}`))
}

function desiredAnswer({ published, targets, endpoint }: ExplainFacts): readonly string[] {
  return published ?? (targets.length > 0 ? targets : (endpoint?.targets ?? []))
}

function isDesired(facts: ExplainFacts, { targets }: AnswerFact): boolean {
  const desired = desiredAnswer(facts)
  return facts.isAnswerPartial === true ? isPart(targets, desired) : isSameSet(targets, desired)
}

/** A client may ask any of the servers: the first that answers something else, else any. Undefined: none answered. */
function decidingAnswer(facts: ExplainFacts): AnswerFact | undefined {
  const given = (facts.answers ?? []).filter(({ fault }) => fault === undefined)
  return given.find((answer) => !isDesired(facts, answer)) ?? given[0]
}

/** Nothing should be answered. */
function silentHop(answers: readonly AnswerFact[]): Hop {
  return skipped('answer', answers.length === 0 ? 'no DNS server is known' : faultText(answers))
}

function faultText(answers: readonly AnswerFact[]): string {
  return answers.map(({ server, fault = '' }) => (fault.includes(server) ? fault : `${server}: ${fault}`)).join('; ')
}

/** Something should be answered, and no server was heard: clients get nothing, or it is not known what they get. */
function missingAnswerHop(facts: ExplainFacts): Hop {
  const { answers = [], storedAnswer, manager } = facts
  if (answers.length > 0) return broken('answer', 'NoAnswer', faultText(answers))
  const stored = validStoredAnswer(facts)
  if (stored !== undefined) {
    if (stored.state !== 'right' || facts.unasked !== undefined) return stored.hop
    const renewed = `Lease ${manager?.lease?.key}, renewed at ${manager?.lease?.renewedAt}`
    return { ...stored.hop, text: `${stored.hop.text}: asked by the manager within the last 5 min (${renewed})` }
  }
  if (facts.unasked !== undefined) return skipped('answer', facts.unasked)
  const idle = idleText(facts)
  const last = storedAnswer === undefined || idle === undefined ? '' : `; ${idle}, so that what it found is out of date`
  const text = `no DNS server of the zone is known here; name one with --server, or the configuration of the manager with --config${last}`
  return degraded(broken('answer', 'AnswerUnknown', text))
}

/** Some of the targets, or nothing of nothing. */
function isPart(part: readonly string[], whole: readonly string[]): boolean {
  return part.length === 0 ? whole.length === 0 : part.every((value) => whole.includes(value))
}
