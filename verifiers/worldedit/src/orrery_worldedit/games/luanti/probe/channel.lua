-- Lines to and from the judge. Both files are opened once, here, through the insecure environment.

local insecure, encode, place = ...
local format, tostring = string.format, tostring
local json, quote = encode.json, encode.quote

local MAX_EVENT_BYTES = 67108864 -- of all events together; a world that says more is broken or hostile

local requests = assert(insecure.io.open(place.channel .. "/cmd", "r"))
local output = assert(insecure.io.open(place.channel .. "/evt", "a"))
local methods = insecure.debug.getmetatable(output).__index
local read, write, flush, seek = methods.read, methods.write, methods.flush, methods.seek

local channel = {step = 0}
local sequence, event_bytes = 0, 0

local function send(line)
	write(output, line)
	flush(output)
end

function channel.emit(kind, data)
	if event_bytes > MAX_EVENT_BYTES then
		return
	end
	sequence = sequence + 1
	local line = format('{"seq":%d,"step":%d,"kind":%s,"data":%s}\n', sequence, channel.step, quote(kind), json(data))
	event_bytes = event_bytes + #line
	if event_bytes > MAX_EVENT_BYTES then
		line = format('{"seq":%d,"step":%d,"kind":"overflow","data":{}}\n', sequence, channel.step)
	end
	send(line)
end

-- The result is text that is JSON already.
function channel.reply(id, ok, result)
	send(format('{"re":%d,"step":%d,"ok":%s,"result":', id, channel.step, tostring(ok)) .. result .. "}\n")
end

-- The next request, or nil. Reading past the end sets a flag in the C library that only a seek takes back.
function channel.next_line()
	local line = read(requests, "*l")
	if not line then
		seek(requests, "cur", 0)
	end
	return line
end

return channel
