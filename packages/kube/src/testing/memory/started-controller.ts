/** A controller of a kind of its own that runs in memory, for tests of controllers. */
import { defineController, type ControllerBuilder, type ControllerOptions } from '../../controller/controller.ts'
import { kind, type Obj } from '../../object/object.ts'
import { memoryEnvironment, type MemoryEnvironment } from './memory-environment.ts'

export interface Route extends Obj {
  spec: { host: string; service?: string }
  status?: { ready: boolean }
}
export const Route = kind<Route>({ group: 'test', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })

export function route(name: string, host = `${name}.test`): Route {
  return { metadata: { name, namespace: 'web' }, spec: { host } }
}

export interface StartedController {
  readonly environment: MemoryEnvironment
  /** `stopped`, or the error that ended it. */
  readonly outcome: Promise<unknown>
  readonly stop: () => void
  readonly kill: () => void
}

const started: StartedController[] = []

export function startController(
  wire: (builder: ControllerBuilder<Route>) => void,
  options: ControllerOptions<Route> = {},
  environment = memoryEnvironment(),
): StartedController {
  const { builder, controller } = defineController('routes', Route, options)
  wire(builder)
  const [stop, kill] = [new AbortController(), new AbortController()]
  controller.prepare(environment)
  const outcome = controller
    .run(environment, { stop: stop.signal, kill: kill.signal })
    .then(() => 'stopped')
    .catch((error: unknown) => error)
  const result = { environment, outcome, stop: () => stop.abort(), kill: () => kill.abort(new Error('killed')) }
  started.push(result)
  return result
}

/** After each test. */
export async function stopControllers(): Promise<void> {
  for (const { stop, kill, outcome, environment } of started.splice(0)) {
    stop()
    kill()
    await environment.clock.advance(10_000)
    await outcome
  }
}

export async function metricOf({ metrics }: MemoryEnvironment, name: string): Promise<string> {
  return metrics.registry.getSingleMetricAsString(name)
}
