/**
 * Tries a scenario with every single fault at every place, then with random mixtures, and collects what went wrong.
 *
 * A failure names its run: `SEED=… PLAN=… WRITE=… npm test` runs that one alone, up to that write's history in print.
 */
import { createHash } from 'node:crypto'
import { drawPlans, enumeratePlans, planName, samplePlans, type Plan } from './plan.ts'
import { judge, type Problem } from './oracle.ts'
import type { Scenario, Write } from './scenario.ts'
import { seededRandom } from './seeded-random.ts'
import { type Run, simulate } from './simulation.ts'

export interface Failure {
  readonly scenario: string
  readonly seed: number
  readonly plans: readonly Plan[]
  readonly problems: readonly Problem[]
  readonly history: readonly Write[]
}

export interface Exploration {
  readonly runs: number
  readonly failures: readonly Failure[]
}

export interface ExploreOptions {
  /** Seeds for the runs with one fault each. @default [1] */
  readonly seeds?: readonly number[]
  /** Faults that are tried. @default all */
  readonly kinds?: readonly Plan['kind'][]
  /** Only so many of `kinds`, chosen by the scenario's name, so that many scenarios together try all. @default all */
  readonly kindCount?: number
  /** How many places are tried of each kind of fault but crashes. @default all */
  readonly samples?: number
  /** How many places and ways to crash are tried. @default all */
  readonly crashes?: number
  /** How many places are tried of lists that stay empty. @default all */
  readonly emptyLists?: number
  /** Runs with three random faults each. @default 20 */
  readonly mixtures?: number
  /** Stop after this many failures: one is enough to be red. @default all */
  readonly maxFailures?: number
  readonly env?: NodeJS.ProcessEnv
}

export async function explore(scenario: Scenario, options: ExploreOptions = {}): Promise<Exploration> {
  const {
    seeds = [1],
    mixtures = 20,
    samples = Infinity,
    crashes = Infinity,
    emptyLists = Infinity,
    maxFailures = Infinity,
    env = process.env,
  } = options
  const failures: Failure[] = []
  let runs = 0
  const attempt = (run: Run, seed: number, plans: readonly Plan[], reference: Run) => {
    runs += 1
    const problems = judge(run, reference)
    if (problems.length > 0) failures.push({ scenario: scenario.name, seed, plans, problems, history: run.history })
  }

  const chosen = env['SEED'] === undefined ? seeds : [Number(env['SEED'])]
  for (const seed of chosen) {
    const reference = await simulate(scenario, [], seed)
    attempt(reference, seed, [], reference)
    const random = seededRandom(seed)
    const all = enumeratePlans(reference.extent).filter(({ kind }) => options.kinds?.includes(kind) ?? true)
    const tried = kindsOf(scenario.name, options)
    const plans = [
      // Drawn before kinds are left out, so that the places of a kind do not depend on which others are tried.
      ...samplePlans(all, { samples, crashes, emptyLists }, random)
        .filter(({ kind }) => tried?.includes(kind) ?? true)
        .map((plan) => [plan]),
      ...Array.from({ length: mixtures }, () => drawPlans(all, random, 3)),
    ]
    for (const set of plans) {
      if (env['PLAN'] !== undefined && env['PLAN'] !== nameOf(set)) continue
      if (failures.length < maxFailures) attempt(await simulate(scenario, set, seed), seed, set, reference)
    }
  }
  return { runs, failures }
}

function kindsOf(name: string, { kinds, kindCount = Infinity }: ExploreOptions): ExploreOptions['kinds'] {
  if (kinds === undefined || kinds.length <= kindCount) return kinds
  const first = createHash('sha1').update(name).digest().readUInt32BE() % kinds.length
  return [...kinds, ...kinds].slice(first, first + kindCount)
}

/** The message of a red test: what is wrong, in which run, and how to see that run again. */
export function describeFailure({ scenario, seed, plans, problems, history }: Failure, env = process.env): string {
  const write = env['WRITE'] ?? String(problems.find((problem) => problem.write !== undefined)?.write ?? history.length)
  const until = history
    .slice(0, Number(write))
    .map(({ index, type, kind, key }) => `    ${index}. ${type} ${kind} ${key}`)
  return [
    `${scenario} went wrong with ${nameOf(plans)}:`,
    ...problems.map(({ oracle, message }) => `  ${oracle}: ${message}`),
    `  writes up to ${write}:`,
    ...until,
    `  again: SEED=${seed} PLAN='${nameOf(plans)}' WRITE=${write} npm test`,
  ].join('\n')
}

function nameOf(plans: readonly Plan[]): string {
  return plans.length === 0 ? 'none' : plans.map(planName).join('+')
}
