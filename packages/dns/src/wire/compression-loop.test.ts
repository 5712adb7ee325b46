/**
 * Compression pointers that never end. `vm` stops a decoder that follows them without end, which gives a failed test instead of
 * a test run that hangs.
 */
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { decodeMessage } from './message.ts'

const QUESTION = '0007 0000 0001 0000 0000 0000'

it.each([
  // The id and the flags are pointers to offsets 2 and 0.
  ['at each other', `c002 c000 0001 0000 0000 0000 c000 0001 0001`],
  ['at itself', `${QUESTION} c00c 0001 0001`],
  ['forwards', `${QUESTION} c00e c00c 0001 0001`],
  // The name of the second record points to offset 30: two pointers in the data of the first one.
  [
    'at each other, inside the data of a record',
    `0007 8000 0001 0002 0000 0000 016100 0001 0001 00 000a 0001 00000000 0004 c020c01e c01e 0001 0001 00000000 0000`,
  ],
  ['at a label that leads back to it', `${QUESTION} 0161 c00c 0001 0001`],
])('a compression pointer that points %s is malformed', (_, hex) => {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex')
  const decode = () => decodeMessage(bytes)
  expect(runInNewContext('decode()', { decode }, { timeout: 5000 })).toMatchObject({ code: 'MALFORMED' })
})
