-- Pipelines as many requests as the first argument says, and reports in one line.
-- wrk asks wrk.format for its one request before the load begins; no Lua runs under load.
function init(args)
   local requests = string.rep(wrk.format(), tonumber(args[1]))
   wrk.format = function() return requests end
end

function done(summary, latency, requests)
   local e = summary.errors
   local errors = e.connect + e.read + e.write + e.status + e.timeout
   print(string.format("measured %d %d %d %d %d", summary.requests, summary.duration,
      latency:percentile(50), latency:percentile(99), errors))
end
