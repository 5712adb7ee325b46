/**
 * `npm run bench -- [NAME…] [--json]`: runs the figures whose name equals NAME or begins with `NAME.`, all by default.
 * Text: a table (`--markdown` for docs/benchmarks.md). `--json`: one object a line, `{"name","value","unit","bound","ok","against","runs"}`; a figure whose
 * baseline is not on the machine has `"value":null` and a `"reason"`. Exit code 2 when a figure misses its bound.
 */
import { readdirSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Figure, median } from './figure.ts'

interface Row {
  readonly name: string
  readonly value: number | null
  readonly unit: string
  readonly bound: string
  readonly ok: boolean | null
  readonly against: string
  /** Every run's value, in order. */
  readonly runs: readonly number[]
  readonly reason?: string
}

const NOT_FIGURES = new Set(['main.ts', 'figure.ts', 'resident.ts', 'bundle.ts'])

async function loadFigures(): Promise<Figure[]> {
  const found: Figure[] = []
  for (const file of readdirSync(import.meta.dirname).toSorted()) {
    if (!file.endsWith('.ts') || NOT_FIGURES.has(file)) continue
    const module = (await import(pathToFileURL(join(import.meta.dirname, file)).href)) as { figures?: Figure[] }
    found.push(...(module.figures ?? []))
  }
  return found
}

function isWanted(figure: Figure, names: readonly string[]): boolean {
  return names.length === 0 || names.some((name) => figure.name === name || figure.name.startsWith(`${name}.`))
}

const round = (value: number): number => Number(value.toPrecision(4))

async function run(figure: Figure): Promise<Row> {
  const { name, unit, against } = figure
  const bound = 'max' in figure.bound ? `≤ ${figure.bound.max}` : `≥ ${figure.bound.min}`
  const reason = figure.unavailable?.()
  if (reason !== undefined) return { name, value: null, unit, bound, ok: null, against, runs: [], reason }
  const runs: number[] = []
  try {
    for (let index = 0; index < (figure.runs ?? 5); index++) runs.push(round(await figure.measure(index)))
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { name, value: null, unit, bound, ok: false, against, runs, reason: `failed: ${message}` }
  }
  const value = round(median(runs))
  const ok = 'max' in figure.bound ? value <= figure.bound.max : value >= figure.bound.min
  return { name, value, unit, bound, ok, against, runs }
}

const args = process.argv.slice(2)
const form = args.includes('--json') ? 'json' : args.includes('--markdown') ? 'markdown' : 'text'
const names = args.filter((argument) => !argument.startsWith('--'))
const figures = (await loadFigures()).filter((figure) => isWanted(figure, names))
if (figures.length === 0) {
  process.stderr.write(`error: no figure is called ${names.join(', ')}\n`)
  process.exit(5)
}

function machine(): string {
  const load = loadavg().map((value) => value.toFixed(1))
  const memory = Math.round(totalmem() / 2 ** 30)
  return `node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'cpu'}, ${memory} GiB, load ${load.join(' ')}`
}

function show(figure: Figure, row: Row): string {
  const verdict = row.ok === null ? 'not measured' : row.ok ? 'ok' : 'MISSED'
  const value = row.value === null ? '-' : `${row.value} ${row.unit}`
  const rest = row.reason ?? `${figure.what}; against ${row.against}; runs ${row.runs.join(', ')}`
  switch (form) {
    case 'json':
      return JSON.stringify(row)
    case 'markdown':
      return `| \`${row.name}\` | ${figure.what} | ${value} | ${row.bound} | ${verdict} | ${row.reason ?? row.runs.join(', ')} |`
    case 'text':
      return `${row.name.padEnd(24)} ${value.padStart(16)}  ${row.bound.padEnd(10)} ${verdict.padEnd(12)} ${rest}`
  }
}

if (form === 'text') console.log(machine())
if (form === 'markdown') {
  console.log(`${new Date().toISOString().slice(0, 10)}, ${machine()}\n`)
  console.log('| figure | what | value | bound | verdict | runs |\n|---|---|---|---|---|---|')
}
let missed = 0
for (const figure of figures) {
  const row = await run(figure)
  if (row.ok === false) missed++
  console.log(show(figure, row))
}
process.exit(missed > 0 ? 2 : 0)
