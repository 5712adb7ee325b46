/** The parts of a program that share a manager, each with its own name in the Events that it writes. */
import type { Manager } from './manager.ts'

/** The manager, with `reportingController` as the default of every controller and function that is added through it. */
export function reportingAs(mgr: Manager, reportingController: string): Manager {
  const by = { reportingController }
  const named: Pick<Manager, 'controller' | 'keyedController' | 'keyedAggregator' | 'aggregator' | 'add' | 'control'> =
    {
      controller: (name, kind, options) => mgr.controller(name, kind, { ...by, ...options }),
      keyedController: (name, options) => mgr.keyedController(name, { ...by, ...options }),
      keyedAggregator: (name, options) => mgr.keyedAggregator(name, { ...by, ...options }),
      aggregator: (name, options, build, act) => mgr.aggregator(name, { ...by, ...options }, build, act),
      add: (name, run, options) => mgr.add(name, run, { ...by, ...options }),
      control: (declare) => mgr.control((control, ended) => declare(reportingAs(control, reportingController), ended)),
    }
  // Not a copy: addresses and leadership are read when they are asked for.
  return Object.assign(Object.create(mgr) as Manager, named)
}
