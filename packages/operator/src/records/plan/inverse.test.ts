import { expect, it } from 'vitest'
import { executorFixture } from '../../../testing/executor-fixture.ts'
import { applied, NOW, owned, plan, record, want, ZONE } from '../../../testing/plan-fixture.ts'
import { inverseOf } from './inverse.ts'

const before = [...owned(record('old', 'A', ['192.0.2.1'])), ...owned(record('kept', 'A', ['192.0.2.1']))]
const forward = plan({
  observed: before,
  desired: [want(record('new', 'A', ['192.0.2.2'])), want(record('kept', 'A', ['192.0.2.3']))],
  sources: { present: new Set([`s-kept.${ZONE}`]), gone: new Set([`s-old.${ZONE}`]) },
})

it('an inverse plan creates before it deletes, so that no name is missing meanwhile at a provider without transactions', async () => {
  expect(forward.changes.map(({ op, name }) => `${op} ${name}`)).toEqual([
    `create new.${ZONE}`,
    `update kept.${ZONE}`,
    `delete old.${ZONE}`,
  ])
  const { executor, calls } = executorFixture(applied(before, forward.changes), {
    capabilities: { isAtomic: false, maxChanges: 2 },
  })
  const inverse = inverseOf(forward, NOW + 1)
  const { results } = await executor.submit(inverse, new AbortController().signal)
  expect(results.map(({ result }) => result)).toEqual(['applied', 'applied', 'applied'])
  const written = calls
    .flat()
    .map(
      ({ from, to }) =>
        `${from === undefined ? 'create' : to === undefined ? 'delete' : 'update'} ${(to ?? from)?.name}`,
    )
  expect(written.filter((line) => !line.includes('_seamark'))).toEqual([
    `create old.${ZONE}`,
    `update kept.${ZONE}`,
    `delete new.${ZONE}`,
  ])
  expect(inverse.changes.every(({ reason }) => reason === 'Undone')).toBe(true)
})
