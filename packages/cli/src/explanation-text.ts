/** The text form of an explanation: the verdict, then a line for each hop. */
import { type Explanation, REASONS } from '@seamark/operator'

const SIGNS = { ok: '✔', broken: '✗', skipped: '–' } as const

/** `isWide` adds what each reason code means. */
export function explanationText({ host, hops, firstBroken }: Explanation, isWide: boolean): string {
  const lines = hops.map((hop, index) => {
    const reason = hop.reason === undefined ? '' : `${hop.reason}: `
    const meaning = isWide && hop.reason !== undefined ? `${' '.repeat(18)}${REASONS[hop.reason]}\n` : ''
    return `${String(index + 1).padStart(2)} ${hop.name.padEnd(12)} ${SIGNS[hop.state]} ${reason}${hop.text}\n${meaning}`
  })
  const verdict =
    firstBroken === undefined
      ? `${host} is as it should be\n`
      : `${host} is broken at ${firstBroken.name}: ${firstBroken.reason === undefined ? firstBroken.text : REASONS[firstBroken.reason]}\n`
  return verdict + lines.join('')
}
