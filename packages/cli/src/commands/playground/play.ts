/** Starts the world, plays the tour and stays, or plays a scenario. */
import { realpath } from 'node:fs/promises'
import { messageOf } from '@seamark/kube'
import { CommandError, EXIT, type Io, untilInterrupted } from '../../command.ts'
import { openControl } from './control/control-server.ts'
import { findRuns, RunFolder } from './control/run-folder.ts'
import { untilAllIsFine } from './page-state.ts'
import { Faults } from './faults.ts'
import { follow } from './feed.ts'
import { createPrinter, type Printer } from './printer.ts'
import { tryCommands } from './printed-commands.ts'
import { readScenario } from './script/scenario-file.ts'
import { playFleet } from './script/scenario.ts'
import { playTour } from './tour.ts'
import { emptyWorldFolder, makeWorldFolder } from './world/world-file.ts'
import { isTeamHost, ZONE } from './world/objects.ts'
import { World } from './world/world.ts'

export interface PlayFlags {
  readonly once?: boolean
  readonly dataDir?: string
  readonly fresh?: boolean
}

export async function playScript(io: Io, path: string): Promise<void> {
  const scenario = await readScenario(path)
  io.stdout.write(`${scenario.title}\n`)
  await playFleet(scenario, createPrinter(io.stdout), untilInterrupted(io))
}

export async function play(io: Io, flags: PlayFlags): Promise<void> {
  if (flags.fresh === true && flags.dataDir === undefined)
    throw new CommandError('--fresh empties the folder of --data-dir; without it nothing is kept', EXIT.usage)
  const startedMs = Date.now()
  const dataDir = flags.dataDir === undefined ? undefined : await openDataDir(flags.dataDir, flags.fresh === true)
  io.stdout.write('Seamark playground: nothing leaves this machine, Ctrl-C removes everything\n')
  const folder = await RunFolder.create(dataDir)
  try {
    await playIn(folder, { io, dataDir, isOnce: flags.once === true, startedMs })
  } finally {
    await folder.remove()
  }
}

/** The real path. */
async function openDataDir(path: string, isFresh: boolean): Promise<string> {
  await makeWorldFolder(path)
  const folder = await realpath(path)
  if ((await findRuns()).some(({ dataDir }) => dataDir === folder))
    throw new CommandError(`--data-dir ${path}: another playground is running on it`)
  if (isFresh) await emptyWorldFolder(folder)
  return folder
}

interface Run {
  readonly io: Io
  readonly dataDir: string | undefined
  readonly isOnce: boolean
  readonly startedMs: number
}

async function playIn(folder: RunFolder, { io, dataDir, isOnce, startedMs }: Run): Promise<void> {
  let ready: Faults | undefined
  const control = await openControl(folder.socket, async (request) => {
    if (ready === undefined) throw new CommandError('the playground is not ready yet: it prints `ready` after its tour')
    return ready.carryOut(request)
  })
  const stopped = new AbortController()
  const signal = AbortSignal.any([untilInterrupted(io), stopped.signal])
  let failure: unknown
  const onFailure = (error: unknown): void => {
    failure = error
    stopped.abort()
  }
  let world: World | undefined
  let faults: Faults | undefined
  try {
    world = await World.start({ folder: folder.path, io, onFailure, ...(dataDir !== undefined && { dataDir }) })
    faults = new Faults(world, signal)
    const printer = createPrinter(io.stdout, startedMs)
    printer.line(`DNS server  ${world.dns}, zone ${ZONE}`)
    printer.line(`page        ${world.page}`)
    if (world.isRestored && !isOnce) showRestored(world, printer)
    else {
      if (world.isRestored) await faults.reset()
      await playTour({ world, faults, printer, io }, signal)
      await untilAllIsFine(world, signal)
    }
    if (isOnce || signal.aborted) return
    ready = faults
    printReady(io, world)
    await follow(world, createPrinter(io.stderr, startedMs), signal)
  } catch (error) {
    // What was waited for does not come any more.
    if (!signal.aborted) throw error
  } finally {
    await control.close()
    await faults?.endTraffic()
    await world?.stop()
  }
  if (failure !== undefined) throw new CommandError(`the manager ended: ${messageOf(failure)}`)
}

/** Of an earlier run: what it answers, as it was left. */
function showRestored({ names }: World, printer: Printer): void {
  const all = names.records().map(({ name, values }) => ({ name: name.slice(0, -1), values: [...values].sort() }))
  const hosts = all.filter(({ name }) => !isTeamHost(name)).sort((a, b) => (a.name < b.name ? -1 : 1))
  printer.heading('The world of the folder is back, as it was left')
  for (const { name, values } of hosts) printer.line(`${name} answers ${values.join(', ')}`)
  printer.line(`${all.length - hosts.length} hosts of teams answer, too`)
}

function printReady({ stdout, env }: Io, world: World): void {
  stdout.write('\nTry in a second terminal:\n')
  stdout.write(`export KUBECONFIG=${world.kubeconfigPath}\n`)
  for (const command of tryCommands(world, env['PATH'])) stdout.write(`${command}\n`)
  stdout.write(`\nThe page; Ctrl-C here ends everything:\nready ${world.page}\n`)
}
