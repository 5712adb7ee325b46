/**
 * Every scenario of examples/fleet/scenarios, on embedded API servers, gateways, a DNS server and real requests, as
 * `seamark playground --script` plays it. Their expectations are the assertions.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseScenario, playFleet, readScenario } from '@seamark/cli/testing'
import { proberInThisThread } from '@seamark/operator/testing'
import { describe, expect, it } from 'vitest'

const folder = join(import.meta.dirname, '../../../examples/fleet/scenarios')
/** Faster probes: verdicts come in a twentieth of the time. */
const SPEED = 20

async function play(scenario: Parameters<typeof playFleet>[0]): Promise<string[]> {
  const lines: string[] = []
  const printer = { line: (text: string) => void lines.push(text.replace(/^after \d+\.\d s/, 'after N s')) }
  await playFleet(scenario, printer, new AbortController().signal, proberInThisThread(SPEED))
  return lines
}

describe.concurrent('the scenarios of the fleet', () => {
  it.each(readdirSync(folder).filter((file) => file.endsWith('.yaml')))('%s', async (file) => {
    const scenario = await readScenario(join(folder, file))
    const lines = await play(scenario)
    expect(lines.length).toBeGreaterThanOrEqual(scenario.steps.length)
  })

  it('fail with what is not as expected', async () => {
    const scenario = parseScenario({
      title: 'nothing is there',
      clusters: ['eu1'],
      steps: [{ expect: { answers: { 'shop.fleet.test': ['eu1'] }, owner: { 'shop.fleet.test': '' }, within: 0 } }],
    })
    await expect(play(scenario)).rejects.toThrow('not within 0 s: shop.fleet.test answers nothing, not eu1')
  })
})
