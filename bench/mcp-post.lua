-- What wrk sends, from the environment: BODY, and HEADERS as lines `Name: value`.
wrk.method = "POST"
wrk.body = os.getenv("BODY")
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
for name, value in os.getenv("HEADERS"):gmatch("([^:\n]+): ([^\n]*)") do
  wrk.headers[name] = value
end
